import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { openStatus } from '../../../src/server/status/open-status.ts'
import { problemsOf } from '../../../src/server/status/problems.ts'
import { buildStatus } from '../../../src/server/status/status.ts'
import { terminalLines } from '../../../src/features/lookup/answers/terminal.ts'
import { fieldsOf } from '../../../src/base/json/objects.ts'
import { readArtifacts, tagAnswer } from '../../../src/features/lookup/tag.ts'
import { describeSignatures } from '../../../src/cli/mirror/status/lines.ts'
import { activeSources } from '../../../src/base/domain/sources.ts'
import { openReader } from '../../../src/store/database/open.ts'
import { type Reads, createReads } from '../../../src/store/reads.ts'
import type { SigningFault } from '../../sandbox/service/data/signed.ts'
import { loadQuick } from '../../support/limits.ts'
import type { ServiceOptions } from '../../sandbox/service/options.ts'
import { repair } from '../../../src/sync/repair.ts'
import { type CatalogBench, catalogBench } from '../../support/catalog/mirror.ts'
import { bearer as ownKey } from '../../support/keys.ts'
import { getUrl } from '../../support/loopback.ts'

const SERVICE = { images: 1, tags: 3, packages: 0, tickets: 0, avrs: 0, users: 0, subscriptions: 0 }
const ALL = { PATCHMIRROR_CATALOG_SCOPE: 'all' }

interface SignedBench {
  readonly made: CatalogBench
  readonly tag: string
  readonly digest: string
  /** Settings that trust the service's key. */
  readonly trust: Record<string, string>
}

/** A service whose first tag has a signed SBOM, VEX and provenance, and a mirror of it; nothing is mirrored yet. */
async function signedBench(more: ServiceOptions = {}): Promise<SignedBench> {
  const made = await catalogBench({ ...SERVICE, ...more }, { env: ALL })
  const { service } = made.sandbox
  const [tag = ''] = service.ids('tags')
  for (const kind of ['sbom', 'vex', 'provenance'] as const) service.sign(tag, kind)
  const file = join(made.dir, 'trusted.pem')
  writeFileSync(file, service.publicKey())
  const trust = { PATCHMIRROR_CATALOG_TRUST_ROOT: file }
  return { made, tag, trust, digest: String(service.read('tags', tag)['digest']) }
}

/** The header of the answer of a tag's artifact, in each way to ask for it. */
async function headersOf({ made, tag }: SignedBench, kind: string): Promise<(string | null)[]> {
  const path = `/v1/tags/${tag}/${kind}`
  const answers = [await made.ask(path), await made.ask(path, { method: 'HEAD' })]
  if (kind === 'sbom') answers.push(await made.ask(`/v1/images/tags/${tag}/sbom`))
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  return [...new Set(answers.map(({ headers }) => headers.get('x-mirror-signature')))]
}

function readsOf({ dir }: CatalogBench): Reads {
  const db = openReader(dir)
  if (db === null) throw new Error('no database')
  onTestFinished(() => void db.close())
  return createReads(db)
}

longTest('an artifact that the trusted key signed says so on its path, in the run and in the store', async () => {
  const bench = await signedBench()
  const { made, tag, trust, digest } = bench
  const { state, facts, message } = await made.runWith(trust, 'catalog')
  expect(state).toBe('complete')
  for (const kind of ['sbom', 'vex', 'provenance']) {
    const [value, ...others] = await headersOf(bench, kind)
    expect(others).toEqual([])
    expect(value).toMatch(new RegExp(`^verified; signer=key sha256:[0-9a-f]{64}; subject=${digest}$`))
  }
  // The other tags' SBOM and VEX are plain JSON, and their provenances are about images that nothing lists.
  expect(facts).toMatchObject({ signaturesVerified: 3, signaturesFailed: 2, signaturesNone: 4 })
  expect(message).toContain('signatures: 2 artifacts failed, 4 without one: ')
  expect(made.store.catalog.countSignatures()).toEqual({ verified: 3, failed: 2, none: 4 })
  const { config } = made
  const options = { reads: readsOf(made), version: 'test', config, active: activeSources(config) }
  const status = buildStatus({ ...options, startedAt: null, now: Date.now, nextRunAt: () => null })
  const problem = problemsOf(status, config, Date.now()).find(({ code }) => code === 'signatures')
  expect(problem).toMatchObject({
    level: 'warning',
    subject: 'catalog',
    effect: 'they are served and believed',
    text: 'the signatures of 2 artifacts failed, 4 without one',
  })
  expect(JSON.stringify(openStatus(status).sources)).not.toContain('it is about')
  expect(describeSignatures(status)).toEqual(['signatures: 3 verified, 2 failed, 4 without one'])
  const page = await (await made.ask(`/-/ui/tag?id=${tag}`)).text()
  expect(page.match(/verified: signed by key sha256:/g)).toHaveLength(3)
  const call = { config, reads: options.reads }
  const item = fieldsOf(JSON.parse(String(options.reads.catalog.readTagItem(tag))))
  const lines = terminalLines(tagAnswer(call, tag, item, readArtifacts(call, 'tags', tag), null))
  expect(lines.join('\n')).toMatch(/^vex +stored .* verified: signed by key sha256:/m)
})

const FAULTS: readonly (readonly [fault: SigningFault, said: string])[] = [
  ['wrongKey', 'failed; reason=the signature does not fit the content or the key'],
  ['otherSubject', `failed; reason=it is about sha256:${'f'.repeat(64)}%2C not about the image`],
  ['altered', 'failed; reason=the signature does not fit the content or the key'],
  ['payloadType', 'failed; reason=its payload type is %22application/json%22%2C not'],
  ['noSignature', 'failed; reason=its envelope has no signature'],
]

longTest('an artifact whose signature is faulty is published and reported, and its header says why', async () => {
  const bench = await signedBench({ tags: FAULTS.length + 1 })
  const { made } = bench
  const [, ...tags] = made.sandbox.service.ids('tags')
  for (const [at, [fault]] of FAULTS.entries()) made.sandbox.service.sign(tags[at] ?? '', 'vex', fault)
  expect(await made.runWith(bench.trust, 'catalog')).toMatchObject({ state: 'complete' })
  for (const [at, [fault, said]] of FAULTS.entries()) {
    const [value, ...others] = await headersOf({ ...bench, tag: tags[at] ?? '' }, 'vex')
    expect(others).toEqual([])
    expect(value, fault).toContain(said)
  }
})

test('a document that is the answer itself has the header whole, in part and unchanged', async () => {
  const bench = await signedBench({ shape: 'camel' })
  const { made, tag, trust } = bench
  await made.runWith(trust, 'catalog')
  const path = `/v1/tags/${tag}/vex`
  const whole = await made.ask(path)
  const headers = { ...ownKey(), 'accept-encoding': 'identity' }
  const etag = whole.headers.get('etag') ?? ''
  const asked = [{ range: 'bytes=0-9' }, { 'if-none-match': etag }, { 'accept-encoding': 'gzip' }]
  const answers = await Promise.all(asked.map((more) => getUrl(whole.url, { ...headers, ...more })))
  expect(answers.map(({ status }) => status)).toEqual([206, 304, 200])
  for (const answer of [whole, ...answers])
    expect(answer.headers.get('x-mirror-signature')).toMatch(/^verified; signer=key/)
})

longTest(
  'an artifact that is not verified is not published where signatures are enforced: the stored one stays',
  async () => {
    const bench = await signedBench()
    const { made, tag, trust } = bench
    const enforce = { ...trust, PATCHMIRROR_CATALOG_SIGNATURES: 'enforce' }
    const first = await made.runWith(enforce, 'catalog')
    const [, other = ''] = made.sandbox.service.ids('tags')
    expect(first).toMatchObject({ state: 'partial', facts: { lacking: 6, signaturesVerified: 3 } })
    expect((await made.ask(`/v1/tags/${other}/vex`)).status).toBe(503)
    const before = await (await made.ask(`/v1/tags/${tag}/vex`)).json()
    made.sandbox.service.sign(tag, 'vex', 'wrongKey')
    const second = await made.runWith(enforce, 'catalog')
    const lacking = second.facts['lackingIds'] as readonly string[]
    expect(lacking.filter((line) => line.includes(tag))).toEqual([
      `/v1/tags/${tag}/vex: its signature is not accepted: failed: the signature does not fit the content or the key (signature verification failed) (catalog.signatures: enforce)`,
    ])
    const { vex_file_url: url } = (await (await made.ask(`/v1/tags/${tag}/vex`)).json()) as Record<string, string>
    expect(new URL(url ?? '').pathname).toBe(new URL((before as Record<string, string>)['vex_file_url'] ?? '').pathname)
    expect((await headersOf(bench, 'vex')).join()).toMatch(/^verified/)
  },
)

longTest(
  'what was verified by no one, or by other settings, is verified by the next run and at the start',
  async () => {
    const bench = await signedBench()
    const { made, trust } = bench
    await made.run('catalog')
    expect(await headersOf(bench, 'vex')).toEqual([null])
    const requests = made.sandbox.requests.entries.filter(({ path }) => path.endsWith('/vex')).length
    const env = { ...ALL, PATCHMIRROR_DATA_DIR: made.dir }
    const configOf = (more: Record<string, string>) =>
      loadQuick({ env: { ...env, ...more }, cwd: made.dir, requireUpstream: false }).config
    expect(await repair(made.store, configOf(trust))).toBeNull()
    expect((await headersOf(bench, 'vex')).join()).toMatch(/^verified/)
    await made.runWith({ ...trust, PATCHMIRROR_CATALOG_SIGNATURES: 'enforce' }, 'catalog')
    expect(made.store.catalog.listUnverified(1)).toMatchObject([{ isEnforced: true }])
    expect(made.sandbox.requests.entries.filter(({ path }) => path.endsWith('/vex'))).toHaveLength(requests)
    expect(await repair(made.store, configOf({}))).toBeNull()
    expect(await headersOf(bench, 'vex')).toEqual([null])
  },
)

longTest('a tag whose digest changes makes the same artifact one about another image', async () => {
  const bench = await signedBench()
  const { made, tag, trust } = bench
  await made.runWith(trust, 'catalog')
  expect((await headersOf(bench, 'sbom')).join()).toMatch(/^verified/)
  made.sandbox.service.change('tags', tag, { digest: `sha256:${'0'.repeat(64)}` })
  await made.runWith(trust, 'catalog')
  expect((await headersOf(bench, 'sbom')).join()).toMatch(/^failed; reason=it is about/)
})
