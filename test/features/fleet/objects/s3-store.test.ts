import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { sha256Hex } from '../../../../src/base/digest.ts'
import { createStoreCounters } from '../../../../src/features/fleet/objects/counted-store.ts'
import { type ObjectStore, readObject } from '../../../../src/features/fleet/objects/object-store.ts'
import { createS3Store } from '../../../../src/features/fleet/objects/s3-store.ts'
import { type S3Fault, type S3Server, startS3Server } from '../../../support/fleet/s3-server.ts'
import { createProxy } from '../../../support/proxy.ts'
import { hasOpenssl, makeTls } from '../../../support/tls.ts'
import { testContract } from '../../../support/fleet/store-contract.ts'

const SETTINGS = { region: 'us-east-1', pathStyle: true, caFile: null }
const ENV = {
  AWS_ACCESS_KEY_ID: 'AKIATEST',
  AWS_SECRET_ACCESS_KEY: 'secret',
  AWS_EC2_METADATA_DISABLED: 'true',
}
const body = Buffer.from('content')
let server: S3Server

beforeAll(async () => {
  Object.assign(process.env, ENV)
  server = await startS3Server()
})
afterAll(() => server.close())
beforeEach(() => {
  server.script = () => undefined
  server.objects.clear()
  server.log.length = 0
})

interface Opened {
  readonly store: ObjectStore
  readonly counters: ReturnType<typeof createStoreCounters>
}

async function open(url = 's3://bucket/fleet', options = {}): Promise<Opened> {
  const counters = createStoreCounters()
  const settings = { ...SETTINGS, endpoint: server.endpoint }
  const store = await createS3Store(url, settings, { counters, pauseMs: 5, ...options })
  onTestFinished(() => store.close())
  return { store, counters }
}

/** The next requests with this method meet these faults, one each; all others none. */
function faults(method: string, ...list: S3Fault[]): void {
  server.script = (request) => (request.method === method ? list.shift() : undefined)
}

testContract(async (place) => (await open(`s3://bucket/${place}`, { singleBytes: 1 << 20 })).store, {
  largeBytes: 1_100_000,
})

const SLOW_DOWN = { status: 503, code: 'SlowDown' }
const CONFLICT = { status: 409, code: 'ConditionalRequestConflict' }

test.each([[SLOW_DOWN], [CONFLICT], [{ status: 429, code: 'TooManyRequests' }]])(
  'a write that was certainly not done is tried again: %o',
  async (fault) => {
    const { store, counters } = await open()
    faults('PUT', fault, fault)
    expect(await store.putIfAbsent('gen/1', body)).toMatchObject({ size: 7 })
    expect(counters.requests.put_if_absent.retried).toBe(2)
    faults('PUT', fault)
    expect(await store.putIfAbsent('gen/1', body)).toBeNull()
  },
)

test('a page that a proxy sends for everything is no object, nor was one written', async () => {
  const { store } = await open()
  server.script = () => 'page'
  const unknown = { outcome: 'unknown', isPassing: true, message: expect.stringContaining('no ETag') as string }
  await expect(store.head('gen/1')).rejects.toMatchObject(unknown)
  await expect(store.get('gen/1')).rejects.toMatchObject(unknown)
  await expect(store.putIfAbsent('gen/1', body)).rejects.toMatchObject(unknown)
  server.script = () => undefined
  expect(await store.head('gen/1')).toBeNull()
})

test('a store that stays busy is a refusal: nothing was written', async () => {
  const { store } = await open()
  faults('PUT', ...Array.from({ length: 9 }, () => SLOW_DOWN))
  await expect(store.putIfAbsent('gen/1', body)).rejects.toMatchObject({
    outcome: 'refused',
    message: expect.stringMatching(/cannot write gen\/1 in s3:.+503 SlowDown/) as string,
  })
  expect(server.log.length).toBe(4)
})

test.each(['lost-answer', 'lost-request', { status: 500, code: 'InternalError' }, { status: 504, code: 'x' }] as const)(
  'a conditional write without a clear answer is not repeated, and its outcome is unknown: %o',
  async (fault) => {
    const { store } = await open()
    faults('PUT', fault)
    await expect(store.putIfAbsent('gen/1', body)).rejects.toMatchObject({ outcome: 'unknown' })
    expect(server.log.length).toBe(1)
    const found = await readObject(store, 'gen/1', 100)
    expect(found?.bytes.toString()).toBe(fault === 'lost-answer' ? 'content' : undefined)
  },
)

test('a plain write and a read without an answer are repeated', async () => {
  const { store, counters } = await open()
  faults('PUT', 'lost-answer', 'lost-request')
  await store.put('head.json', body)
  faults('GET', { status: 500, code: 'InternalError' }, 'lost-request')
  expect((await readObject(store, 'head.json', 100))?.bytes.toString()).toBe('content')
  expect([counters.requests.put.retried, counters.requests.get.retried]).toEqual([2, 2])
})

test('an answer that does not come in time is of unknown outcome', async () => {
  const { store } = await open('s3://bucket/fleet', { answerMs: 100 })
  faults('PUT', 'silent')
  await expect(store.putIfMatch('lease.json', body, '"x"')).rejects.toMatchObject({
    outcome: 'unknown',
    message: expect.stringMatching(/no answer within 0\.1/) as string,
  })
})

test.each(['half', 'stall'] as const)(
  'a body that breaks off fails, and is never taken as whole: %s',
  async (fault) => {
    const { store } = await open('s3://bucket/fleet', { stallMs: 200 })
    await store.put('bundles/x', Buffer.alloc(100_000, 'x'))
    faults('GET', fault)
    const found = await store.get('bundles/x')
    if (found === null) throw new Error('no object')
    await expect(buffer(found.body)).rejects.toMatchObject({ code: 'fleet', outcome: 'unknown' })
    const rest = await store.get('bundles/x', { from: 50_000 })
    expect(rest && (await buffer(rest.body)).length).toBe(50_000)
  },
)

test('a body of unannounced length is not read to its end, which may never come', async () => {
  const { store } = await open()
  await store.put('head.json', body)
  faults('GET', 'endless', 'endless')
  await expect(readObject(store, 'head.json', 100)).rejects.toThrow(/more than (it announced|100)/)
  const found = await store.get('head.json')
  await expect(found && buffer(found.body)).rejects.toThrow(/more than it announced/)
})

test('what a store says is shown in part: it can be of any length, and repeat a token that it was sent', async () => {
  const { store } = await open()
  const token = 'FwoGZXIvYXdzE+/='.repeat(20)
  faults('PUT', { status: 403, code: `Denied for ${token} ${'so '.repeat(2000)}` })
  const error = String(await store.put('k', body).catch((cause: unknown) => cause))
  expect(error).toContain('Denied for …')
  expect(error).not.toContain(token.slice(0, 40))
  expect(error.length).toBeLessThan(500)
})

test('a store that ignores ranges is refused, so that no file is continued with its beginning', async () => {
  const { store } = await open()
  await store.put('bundles/x', body)
  faults('GET', 'whole')
  await expect(store.get('bundles/x', { from: 3 })).rejects.toThrow(/as a whole/)
})

test('a list of which the store sends a part alone is no whole list', async () => {
  const { store } = await open()
  for (const name of ['a', 'b', 'c']) await store.put(`readers/${name}`, body)
  const listed = async (): Promise<string[]> => {
    const keys: string[] = []
    for await (const { key } of store.list('readers/')) keys.push(key)
    return keys
  }
  expect((await listed()).length).toBe(3)
  faults('GET', 'no-token')
  await expect(listed()).rejects.toThrow('list readers/: the store sent a part')
})

test('a write that is answered as one of nothing says not that the object exists', async () => {
  const { store } = await open()
  const first = await store.put('lease.json', body)
  faults('PUT', { status: 404, code: 'NotFound' }, { status: 404, code: 'NoSuchKey' })
  await expect(store.putIfAbsent('gen/1', body)).rejects.toMatchObject({
    outcome: 'refused',
    message: expect.stringContaining('cannot write gen/1: the store answered 404') as string,
  })
  expect(await store.putIfMatch('lease.json', body, first.etag)).toBeNull() // it was deleted
})

/** A file for an upload in parts. */
function largeFile() {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-s3-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const bytes = Buffer.alloc(150_001, 'part')
  const file = join(folder, 'bundle')
  writeFileSync(file, bytes)
  return { file, size: bytes.length, sha256: sha256Hex(bytes) }
}

test('an upload in parts is committed once under its condition, and aborted otherwise', async () => {
  const { store, counters } = await open('s3://bucket/fleet', {
    singleBytes: 1 << 16,
    partBytes: 1 << 16,
  })
  const large = largeFile()
  faults('PUT', SLOW_DOWN, 'lost-request')
  expect((await store.putIfAbsent('bundles/y', large))?.size).toBe(large.size)
  expect(counters.requests.put_if_absent.retried).toBe(2)
  expect(server.log.filter((line) => /partNumber=\d/.test(line)).length).toBe(5)
  expect(await store.putIfAbsent('bundles/y', large)).toBeNull()
  expect(server.uploads.size).toBe(0)
  server.script = ({ query }) => (query.get('partNumber') === '2' ? { status: 403, code: 'AccessDenied' } : undefined)
  await expect(store.put('bundles/z', large)).rejects.toMatchObject({ outcome: 'refused' })
  expect(server.uploads.size).toBe(0)
  server.script = ({ method, query }) => (method === 'POST' && query.has('uploadId') ? 'lost-answer' : undefined)
  await expect(store.put('bundles/z', large)).rejects.toMatchObject({ outcome: 'unknown' })
  expect((await store.head('bundles/z'))?.size).toBe(large.size)
})

test.each([
  [{ status: 403, code: 'AccessDenied' }, /403 AccessDenied.+Allow these credentials/],
  [{ status: 403, code: 'SignatureDoesNotMatch' }, /Check AWS_ACCESS_KEY_ID.+fleet\.endpoint/],
  [{ status: 400, code: 'ExpiredToken' }, /ended: give new ones\. Restart/],
  [{ status: 400, code: 'AuthorizationHeaderMalformed' }, /region of the bucket: fleet\.endpoint/],
  [{ status: 501, code: 'NotImplemented' }, /patchmirror fleet check/],
] as const)('a refusal says what to do: %o', async (fault, what) => {
  const { store } = await open()
  faults('PUT', fault)
  await expect(store.putIfAbsent('k', body)).rejects.toMatchObject({
    outcome: 'refused',
    message: expect.stringMatching(what) as string,
  })
})

test('a missing bucket and missing credentials are reported as that', async () => {
  const { store } = await open('s3://missing-bucket')
  await expect(store.get('k')).rejects.toThrow(/NoSuchBucket.+Create the bucket/)
  const none = await open()
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) Reflect.deleteProperty(process.env, name)
  const files = { AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null' }
  Object.assign(process.env, files)
  onTestFinished(() => void Object.assign(process.env, ENV))
  await expect(none.store.get('k')).rejects.toThrow(/Give credentials: AWS_ACCESS_KEY_ID/)
})

test('a store that is down is of unknown outcome after some attempts', async () => {
  const other = await startS3Server()
  await other.close()
  const settings = { ...SETTINGS, endpoint: other.endpoint }
  const store = await createS3Store('s3://bucket', settings, {
    counters: createStoreCounters(),
    pauseMs: 5,
  })
  onTestFinished(() => store.close())
  await expect(store.head('k')).rejects.toMatchObject({
    code: 'fleet',
    message: expect.stringMatching(/cannot read k in s3:\/\/bucket at http.+ECONNREFUSED/) as string,
  })
})

test('without the SDK, one line says what to install, with the version of package.json', async () => {
  const absent = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
  const opened = open('s3://bucket', { load: () => Promise.reject(absent) })
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
    optionalDependencies: Record<string, string>
  }
  const version = manifest.optionalDependencies['@aws-sdk/client-s3']
  await expect(opened).rejects.toMatchObject({
    code: 'config',
    message: expect.stringMatching(
      new RegExp(`^fleet\\.url: .+ run "npm install @aws-sdk/client-s3@${version}" in [^\n]+$`),
    ) as string,
  })
})

test.skipIf(!hasOpenssl)('a certificate of an own authority needs upstream.caFile', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-s3-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const { key, cert, caFile } = makeTls(folder)
  const secure = await startS3Server({ tls: { key, cert } })
  onTestFinished(() => secure.close())
  const settings = { ...SETTINGS, endpoint: secure.endpoint }
  const options = { counters: createStoreCounters(), pauseMs: 5 }
  const trusting = await createS3Store('s3://bucket', { ...settings, caFile }, options)
  const other = await createS3Store('s3://bucket', settings, options)
  await trusting.put('k', body)
  await expect(other.get('k')).rejects.toMatchObject({
    outcome: 'refused',
    message: expect.stringMatching(/Set upstream\.caFile/) as string,
  })
  for (const store of [trusting, other]) store.close()
})

test('a store behind a proxy of the environment is reached through it', async () => {
  const proxy = await createProxy()
  process.env['HTTP_PROXY'] = proxy.url
  onTestFinished(() => void Reflect.deleteProperty(process.env, 'HTTP_PROXY'))
  const endpoint = server.endpoint.replace('127.0.0.1', 's3.test')
  const counters = createStoreCounters()
  const store = await createS3Store('s3://bucket', { ...SETTINGS, endpoint }, { counters })
  onTestFinished(() => store.close())
  await store.put('k', body)
  expect((await readObject(store, 'k', 100))?.bytes.toString()).toBe('content')
  expect(proxy.asked[0]).toMatch(/s3\.test/)
})
