import { createReadStream } from 'node:fs'
import { Agent as HttpsAgent } from 'node:https'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { getCACertificates } from 'node:tls'
import type * as S3Module from '@aws-sdk/client-s3'
import { createProxyRule } from '../../../config/proxies.ts'
import type { Config } from '../../../config/schema.ts'
import { http } from '../../../base/connections/http.ts'
import { MirrorError, systemCode } from '../../../base/errors.ts'
import { readHttpDate } from '../../../base/time.ts'
import { readNamedFile } from '../../../base/files.ts'
import type { ObjectBody } from './object-store.ts'

/** The SDK, once it is loaded. */
type Sdk = typeof S3Module
type S3Client = S3Module.S3Client

/** Settings of a store with the protocol of S3. */
export type S3Settings = Pick<Config['fleet'], 'endpoint' | 'region' | 'pathStyle' | 'caFile'>

/** Condition of a write, as headers; neither: none. */
export interface Condition {
  readonly IfNoneMatch?: '*'
  readonly IfMatch?: string
}

/** What a store answers of an object. `modifiedAt`: unix ms by the store's clock, null when it does not say. */
export interface Answered {
  readonly size: number
  readonly etag: string
  readonly modifiedAt: number | null
}

/** One part of an upload. */
export interface Part {
  readonly ETag: string
  readonly PartNumber: number
}

/** An upload of several parts. */
interface UploadName {
  readonly Key: string
  readonly UploadId: string
}

/** The requests that a store is sent, each once; they reject with the SDK's errors. Keys are whole, with the prefix. */
export interface S3Requests {
  get(key: string, from: number, signal: AbortSignal): Promise<Answered & { body: Readable; length: number }>
  head(key: string, signal: AbortSignal): Promise<Answered>
  put(key: string, content: ObjectBody, condition: Condition, signal: AbortSignal): Promise<Answered>
  list(prefix: string, after: string | undefined, signal: AbortSignal): Promise<ListPage>
  delete(key: string, signal: AbortSignal): Promise<void>
  startUpload(key: string, signal: AbortSignal): Promise<UploadName>
  putPart(upload: UploadName, number: number, bytes: Buffer, signal: AbortSignal): Promise<Part>
  completeUpload(
    upload: UploadName,
    parts: readonly Part[],
    condition: Condition,
    signal: AbortSignal,
  ): Promise<Omit<Answered, 'size'>>
  abortUpload(upload: UploadName, signal: AbortSignal): Promise<void>
  close(): void
}

/** A page of a list, and where the next one begins. */
interface ListPage {
  readonly objects: readonly (Answered & { readonly key: string })[]
  readonly next: string | undefined
  /** Whether the store says that there is more. */
  readonly isCut: boolean
}

/** Longest wait for a connection, milliseconds. */
const CONNECT_MS = 10_000
/** The SDK's package with the version of package.json. */
const SDK_PACKAGE = '@aws-sdk/client-s3@3.1169.0'

/**
 * Loads the SDK and creates a client of one bucket. Credentials come from where the SDK looks: AWS_* variables, profile files,
 * roles. Throws `config`, with the command that installs the SDK, where it is not installed.
 */
export async function connectS3(
  bucket: string,
  settings: S3Settings,
  load: () => Promise<Sdk> = () => import('@aws-sdk/client-s3'),
): Promise<S3Requests> {
  const sdk = await load().catch((cause: unknown) => {
    if (systemCode(cause) !== 'ERR_MODULE_NOT_FOUND') throw cause
    const folder = fileURLToPath(new URL('../../../..', import.meta.url))
    throw new MirrorError(
      'config',
      `fleet.url: s3:// needs the package ${SDK_PACKAGE}, which is not installed: run "npm install ${SDK_PACKAGE}" in ${folder}`,
      { cause },
    )
  })
  const client = createClient(sdk, settings)
  return createRequests(sdk, client, bucket)
}

function createClient(sdk: Sdk, { endpoint, region, pathStyle, caFile }: S3Settings): S3Client {
  const address = endpoint?.split('?')[0] ?? null // its options are in the other settings
  const target = new URL(address ?? `https://s3.${region}.amazonaws.com`)
  const proxy = createProxyRule(null, process.env)(target)?.url
  const agent = {
    keepAlive: true,
    maxSockets: 50,
    ...(proxy !== undefined && { proxyEnv: { HTTP_PROXY: proxy, HTTPS_PROXY: proxy } }),
  }
  const ca = caFile === null ? undefined : [...getCACertificates('default'), readNamedFile(caFile).toString('utf8')]
  return new sdk.S3Client({
    region,
    ...(address !== null && { endpoint: address }),
    forcePathStyle: pathStyle,
    // Other stores refuse the checksums that the SDK adds by itself, and the coding aws-chunked that carries them.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Retries are decided in one place, which knows what a write without an answer may have done.
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      httpAgent: new http.Agent(agent),
      httpsAgent: new HttpsAgent({ ...agent, ...(ca !== undefined && { ca }) }),
    },
  })
}

/** The middleware's view of a request and of a response, whose headers it sets and reads. */
interface WithHeaders {
  readonly headers?: Record<string, string>
}

const headersOf = (message: unknown): Record<string, string> | undefined =>
  typeof message === 'object' && message !== null ? (message as WithHeaders).headers : undefined

function createRequests(sdk: Sdk, client: S3Client, Bucket: string): S3Requests {
  const dates = new WeakMap<object, number>()
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args)
      const at = readHttpDate(headersOf(result.response)?.['date'])
      if (at !== null) dates.set(result.output, at)
      return result
    },
    { step: 'deserialize', priority: 'high', name: 'dateOfAnswer' },
  )
  const uploads = createUploads(sdk, client, Bucket, dates)
  return {
    ...uploads,
    async get(Key, from, abortSignal) {
      const range = from > 0 ? { Range: `bytes=${from}-` } : {}
      const answer = await client.send(new sdk.GetObjectCommand({ Bucket, Key, ...range }), {
        abortSignal,
      })
      const length = answer.ContentLength ?? 0
      const total = Number(/\/(\d+)$/.exec(answer.ContentRange ?? '')?.[1] ?? length)
      const body = answer.Body as Readable
      return { ...ofStore(answered(answer, total), body), body, length }
    },
    async head(Key, abortSignal) {
      const answer = await client.send(new sdk.HeadObjectCommand({ Bucket, Key }), { abortSignal })
      return ofStore(answered(answer, answer.ContentLength ?? 0))
    },
    async put(Key, content, condition, abortSignal) {
      const size = Buffer.isBuffer(content) ? content.length : content.size
      const Body = Buffer.isBuffer(content) ? content : createReadStream(content.file)
      const command = new sdk.PutObjectCommand({
        Bucket,
        Key,
        Body,
        ContentLength: size,
        ...condition,
      })
      if (!Buffer.isBuffer(content)) signBody(command, content.sha256)
      const answer = await client.send(command, { abortSignal })
      return { size, etag: answer.ETag ?? '', modifiedAt: dates.get(answer) ?? null }
    },
    async list(Prefix, token, abortSignal) {
      const page = token === undefined ? {} : { ContinuationToken: token }
      const command = new sdk.ListObjectsV2Command({ Bucket, Prefix, ...page })
      const { Contents = [], NextContinuationToken, IsTruncated } = await client.send(command, { abortSignal })
      const objects = Contents.map((one) => ({
        ...answered(one, one.Size ?? 0),
        key: one.Key ?? '',
      }))
      return { objects, next: NextContinuationToken, isCut: IsTruncated === true }
    },
    async delete(Key, abortSignal) {
      await client.send(new sdk.DeleteObjectCommand({ Bucket, Key }), { abortSignal })
    },
    close: () => client.destroy(),
  }
}

/** A stream's digest cannot be computed before it is sent, so the one that is known is signed. */
function signBody(command: InstanceType<Sdk['PutObjectCommand']>, sha256: string): void {
  command.middlewareStack.add(
    (next) => (args) => {
      const headers = headersOf(args.request)
      if (headers !== undefined) headers['x-amz-content-sha256'] = sha256
      return next(args)
    },
    { step: 'build', name: 'digestOfBody' },
  )
}

function createUploads(sdk: Sdk, client: S3Client, Bucket: string, dates: WeakMap<object, number>) {
  return {
    async startUpload(Key: string, abortSignal: AbortSignal) {
      const command = new sdk.CreateMultipartUploadCommand({ Bucket, Key })
      const { UploadId = '' } = await client.send(command, { abortSignal })
      return { Key, UploadId }
    },
    async putPart(upload: UploadName, PartNumber: number, Body: Buffer, abortSignal: AbortSignal) {
      const command = new sdk.UploadPartCommand({ Bucket, ...upload, PartNumber, Body })
      const { ETag = '' } = await client.send(command, { abortSignal })
      return { ETag, PartNumber }
    },
    async completeUpload(upload: UploadName, parts: readonly Part[], condition: Condition, abortSignal: AbortSignal) {
      const MultipartUpload = { Parts: [...parts] }
      const command = new sdk.CompleteMultipartUploadCommand({
        Bucket,
        ...upload,
        MultipartUpload,
        ...condition,
      })
      const answer = await client.send(command, { abortSignal })
      return { etag: answer.ETag ?? '', modifiedAt: dates.get(answer) ?? null }
    },
    async abortUpload(upload: UploadName, abortSignal: AbortSignal) {
      await client.send(new sdk.AbortMultipartUploadCommand({ Bucket, ...upload }), { abortSignal })
    },
  }
}

/** Refuses an answer without the ETag that each store gives: a proxy can send a page for any object, which would exist then. */
function ofStore(answer: Answered, body?: Readable): Answered {
  if (answer.etag !== '') return answer
  body?.destroy()
  throw new Error('the answer has no ETag, so another program than the store sent it')
}

function answered(
  { ETag, LastModified }: { ETag?: string | undefined; LastModified?: Date | undefined },
  size: number,
): Answered {
  return { size, etag: ETag ?? '', modifiedAt: LastModified?.getTime() ?? null }
}
