import { randomUUID } from 'node:crypto'
import type { Config } from '../../../config/schema.ts'
import { privateKeySeed, publicKeyBytes } from '../../../config/kinds/keys.ts'
import { SIGNATURE_DIALECTS } from '../../../config/kinds/webhooks.ts'
import { imageCreatedType } from '../../../base/domain/event-types.ts'
import { MirrorError } from '../../../base/errors.ts'
import { networkError } from '../../../upstream/http/response.ts'
import { type RawAnswer, createTransport } from '../../../upstream/http/transport.ts'
import { isValidAt } from '../../../webhooks/receive/secret-file.ts'
import { type SignatureDialect, type MatchedForm, signDelivery } from '../../../webhooks/receive/signature.ts'
import { type StoredSecret, readStoredSecrets, readSecretLines } from '../../../cli/webhooks/secrets.ts'
import { type GlobalOptions, print, settings } from '../../../cli/context.ts'
import { table, visible } from '../../../cli/output.ts'

/** Options of `patchmirror webhooks test --url`. */
interface SendOptions extends GlobalOptions {
  url?: string
  secretFile?: string
  dialect?: string
  type?: string
  tag?: string
  id?: string
  clock?: string
  json?: boolean
}

/** What an endpoint answered. */
interface Sent {
  id: string
  dialect: MatchedForm
  secret: string
  status: number
  milliseconds: number
  retryAfter: string | null
  answer: string
}

const TIMEOUT_MS = 15_000
const SHOWN = 500

/** `patchmirror webhooks test --url URL`: signs a made-up event and sends it once. 0 when the answer is 2xx, else 1. */
export async function sendCommand(options: SendOptions): Promise<number> {
  const secrets = options.secretFile === undefined ? ['webhooks.secrets'] : []
  const { config } = settings(options, false, ['upstream.caFile', ...secrets])
  const url = urlOf(options.url)
  const dialect = dialectOf(options.dialect)
  const secret = secretOf(config, options.secretFile)
  const id = idOf(options.id)
  const now = Date.now() + clockOf(options.clock) * 1000
  const event = eventOf(options, imageCreatedType(config.upstream.vendor))
  const body = sampleEvent(id, options.id === undefined ? now : null, event)
  const timestamp = Math.floor(now / 1000)
  const signature = signDelivery({ id, timestamp, body, secret: secret.secret, dialect })
  if (signature === null) {
    const text = `${secret.label} is not base64, and the dialect ${dialect} needs that; try --dialect vendor`
    throw new MirrorError('usage', text)
  }
  const headers = {
    'content-type': 'application/cloudevents+json',
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  }
  const answered = await post(config, url, headers, body)
  const form = privateKeySeed(secret.secret) === null ? dialect : 'ed25519'
  report({ id, dialect: form, secret: secret.label, ...answered }, options)
  return answered.status >= 200 && answered.status < 300 ? 0 : 1
}

function report(sent: Sent, options: SendOptions): void {
  if (options.json === true) return print(JSON.stringify(sent, null, 2))
  const rows = Object.entries(sent).map(([name, value]) => [name, value === null ? '-' : String(value)])
  print(table(['what', 'value'], rows))
  const meaning = MEANINGS[sent.status]
  if (meaning !== undefined) print(`\n${meaning}`)
  if (sent.status === 202 && options.tag === undefined) print(UNLISTED)
}

const NO_ENDPOINT =
  'no webhook endpoint at this address: a mirror takes deliveries at the paths of its webhooks.endpoints (/-/webhooks)'

/** What the answers of a Patchmirror mean. */
const MEANINGS: Readonly<Record<number, string>> = {
  200: 'accepted, but it is a duplicate, or its type is not enabled (webhooks.types)',
  202: 'accepted as a new event; "patchmirror webhooks inbox" there shows its state',
  401: 'not accepted: see the log of the receiving mirror (reason)',
  404: NO_ENDPOINT,
  405: NO_ENDPOINT,
  503: 'not now: no secret there yet, too many are pending, or the inbox cannot be written; the log names the cause',
}

const UNLISTED =
  'it names an image that does not exist: it becomes a dead letter after ten minutes. Give a mirrored one with --tag'

/** One attempt; redirects are not followed: what is signed goes to the given address only. */
async function post(
  { upstream }: Config,
  url: URL,
  headers: Record<string, string>,
  body: Buffer,
): Promise<Omit<Sent, 'id' | 'dialect' | 'secret'>> {
  const transport = createTransport({ ...upstream, proxy: null }) // that is upstream's way out
  const began = performance.now()
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await transport.send({ method: 'POST', url, headers, body }, signal)
    const answer = visible((await textOf(response.body)).slice(0, SHOWN)).trim()
    const milliseconds = Math.round(performance.now() - began)
    const retryAfter = response.headers['retry-after']
    const asked = typeof retryAfter === 'string' ? retryAfter : null
    return { status: response.status, milliseconds, retryAfter: asked, answer }
  } catch (error) {
    throw networkError(error, `${url.host} does not answer`, TIMEOUT_MS)
  } finally {
    await transport.close()
  }
}

/** As much of a body as is shown, and no more. */
async function textOf(body: RawAnswer['body']): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size > 4 * SHOWN) break
  }
  return Buffer.concat(chunks).toString()
}

function urlOf(text: string | undefined): URL {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : null
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '') return url
  throw new MirrorError('usage', `--url takes the address of an endpoint, such as http://127.0.0.1:8080/-/webhooks`)
}

function dialectOf(text: string | undefined): SignatureDialect {
  const dialect = SIGNATURE_DIALECTS.find((one) => one === (text ?? 'standard'))
  if (dialect !== undefined) return dialect
  throw new MirrorError('usage', `--dialect ${text ?? ''}: they are ${SIGNATURE_DIALECTS.join(', ')}`)
}

/** Returns the secret to sign with: the newest valid one, or the first of the file. Public keys cannot sign. */
function secretOf(config: Config, file: string | undefined): StoredSecret {
  const all = file === undefined ? readStoredSecrets(config) : readSecretLines(file, true)
  const valid = all.filter((one) => isValidAt(one, Date.now()))
  const able = valid.filter(({ secret }) => publicKeyBytes(secret) === null)
  const newest = file === undefined ? able.at(-1) : able[0]
  if (newest !== undefined) return newest
  const text =
    valid.length > 0
      ? 'the mirror has public keys only (whpk_), which cannot sign: give a private key (whsk_) or a secret in a file (--secret-file)'
      : 'the mirror has no webhook secret: give one in a file (--secret-file), or register'
  throw new MirrorError('usage', text)
}

function idOf(text: string | undefined): string {
  if (text === undefined) return randomUUID()
  if (/^[\w:-]{1,256}$/.test(text)) return text
  throw new MirrorError('usage', '--id takes 1 to 256 of A-Z a-z 0-9 _ : -')
}

function clockOf(text: string | undefined): number {
  if (text === undefined) return 0
  if (/^[+-]?\d{1,9}$/.test(text)) return Number(text)
  throw new MirrorError('usage', `--clock ${text}: not a number of seconds such as -301`)
}

const TAG = /^([^\s@]+?)(?::([\w][\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/

function eventOf({ tag = 'patchmirror/test:test', type }: SendOptions, usual: string): SampleEvent {
  const [, repository, name = 'latest', digest = null] = TAG.exec(tag) ?? []
  if (repository !== undefined) return { type: type ?? usual, repository, tag: name, digest, arch: 'amd64' }
  throw new MirrorError('usage', `--tag ${tag}: not REPOSITORY:TAG or REPOSITORY:TAG@sha256:…`)
}

/** What a made-up event announces. */
interface SampleEvent {
  readonly type: string
  readonly repository: string
  readonly tag: string
  readonly digest: string | null
  readonly arch: string
}

/**
 * The body of an event as the service sends it: a CloudEvent in JSON (wire facts, webhook deliveries). `now`: null for one without a
 * time, which has the same bytes whenever it is sent.
 */
export function sampleEvent(id: string, now: number | null, event: SampleEvent): Buffer {
  const { type, repository, tag, digest, arch } = event
  const named = { image_repo: repository, image_tag: tag, arch }
  return Buffer.from(
    JSON.stringify({
      specversion: '1.0',
      id,
      source: 'https://patchmirror.invalid/webhooks/send',
      type,
      subject: `patchmirror.invalid/${repository}:${tag}`,
      ...(now !== null && { time: `${new Date(now).toISOString().slice(0, 19)}Z` }),
      data: digest === null ? named : { ...named, image_digest: digest },
    }),
  )
}
