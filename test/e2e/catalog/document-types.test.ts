import Database from 'better-sqlite3'
import { expect } from 'vitest'
import { databasePath, openReader } from '../../../src/store/database/open.ts'
import { verifyStore } from '../../../src/sync/verify/verify.ts'
import { below, carry, comparable, folder, linksIn, serveFolder } from '../../features/bundles/air-gap.ts'
import { type PlainBench, type Said, type Saying, plainBench } from '../../support/catalog/plain-service.ts'
import { raw } from '../../support/catalog/raw.ts'
import { longTest, test } from '../../support/tables.ts'

const NO_CATALOG = { PATCHMIRROR_UPSTREAM_CATALOG_URL: '' }

const HOUR = 3_600_000
const SBOM = JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6' })
const VEX = JSON.stringify({ '@context': 'https://openvex.dev/ns/v0.2.0', statements: [] })
const VERSIONED = 'application/vnd.cyclonedx+json; version=1.6'
const INFERRED = 'application/vnd.cyclonedx+json'

const listOf =
  (...data: unknown[]): Saying =>
  () => ({ body: { data, cursor: { after: null } } })

const typed = (body: string, type: string): Said => ({ body, headers: { 'content-type': type } })

/** An answer that names the document at a path of the same host. */
const naming =
  (path: string): Saying =>
  (url) => ({ body: { url: `${url.origin}${path}?sig=1` } })

/** A service with some tags, which have what these paths say. */
async function bench(
  tags: readonly string[],
  paths: Record<string, Saying>,
  now: () => number = Date.now,
): Promise<PlainBench> {
  const items = tags.map((id) => [`/v1/tags/${id}`, (): Said => ({ body: { id } })] as const)
  const list = listOf(...tags.map((id) => ({ id })))
  return plainBench({ '/v1/tags/': list, ...Object.fromEntries(items), ...paths }, {}, now)
}

async function linkOf(made: PlainBench, path: string): Promise<string> {
  const { url } = (await (await made.ask(path)).json()) as { url: string }
  return url
}

async function typeAt(url: string): Promise<string | null> {
  return (await fetch(url)).headers.get('content-type')
}

longTest('a document named by two answers has in each the type that upstream gave it there', async () => {
  const made = await bench(['a', 'b', 'c'], {
    '/v1/tags/a/sbom': naming('/documents/a'),
    '/v1/tags/b/sbom': naming('/documents/b'),
    '/v1/tags/c/sbom': () => typed(SBOM, 'application/json; charset=utf-8'),
    '/documents/a': () => typed(SBOM, INFERRED),
    '/documents/b': () => typed(SBOM, VERSIONED),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const one = await linkOf(made, '/v1/tags/a/sbom')
  const other = await linkOf(made, '/v1/tags/b/sbom')
  expect(new URL(one).pathname).toBe(new URL(other).pathname)
  expect(new URL(one).searchParams.has('type')).toBe(false) // as it was before types were stored
  expect([await typeAt(one), await typeAt(other)]).toEqual([INFERRED, VERSIONED])
  expect((await made.ask('/v1/tags/c/sbom')).headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(made.store.catalog.readAnswer('/v1/tags/a/sbom')?.links).toEqual([
    { at: ['url'], digest: expect.any(String) as string },
  ])
})

test('a document has the same type by a link and inline', async () => {
  const made = await bench(['a'], {
    '/v1/tags/a/sbom': naming('/documents/a'),
    '/v1/tags/a/vex': () => typed(VEX, 'application/vnd.openvex+json'),
    '/documents/a': () => typed(SBOM, VERSIONED),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const link = await linkOf(made, '/v1/tags/a/sbom')
  for (const [path, type] of [
    [link, VERSIONED],
    ['/v1/tags/a/vex', 'application/vnd.openvex+json'],
  ] as const) {
    const plain = await raw(made, path)
    const etag = plain.headers.etag ?? ''
    const answers = [
      plain,
      await raw(made, path, { 'accept-encoding': 'gzip' }),
      await raw(made, path, { range: 'bytes=1-5' }),
      await raw(made, path, { 'if-none-match': etag }),
      await raw(made, path, {}, 'HEAD'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 206, 304, 200])
    for (const { headers } of answers)
      expect(headers).toMatchObject({ 'content-type': type, 'x-content-type-options': 'nosniff' })
  }
  const bent = link.replace(/&type=[^&]*/, `&type=${Buffer.from('text/html').toString('base64url')}`)
  expect(bent).not.toBe(link)
  for (const forged of [bent, link.replace(/&type=[^&]*/, '')]) expect((await fetch(forged)).status).toBe(403)
})

test('a media type that is contradicting, empty or executable is not served', async () => {
  const patches: Record<string, [given: string, served: string]> = {
    '/documents/html': ['text/html', 'application/octet-stream'],
    '/documents/json': ['application/json', 'text/plain; charset=utf-8'],
    '/documents/none': ['', 'text/plain; charset=utf-8'],
    '/documents/store': ['binary/octet-stream', 'text/plain; charset=utf-8'],
    '/documents/long': [`text/x-diff; a=${'b'.repeat(300)}`, 'text/plain; charset=utf-8'],
    '/documents/bad': ['text/x-diff, text/html', 'text/plain; charset=utf-8'],
    '/documents/own': ['text/x-diff; charset=utf-8', 'text/x-diff; charset=utf-8'],
  }
  const item = { id: 'p', ecosystem: 'npm', name: 'n', version: '1.0', arch: 'noarch' }
  const made = await plainBench(
    {
      '/v1/packages/': listOf(item),
      '/v1/packages/p/': () => ({ body: item }),
      '/v1/packages/p/artifacts/patches': ({ origin }) => ({
        body: Object.keys(patches).map((path) => `${origin}${path}`),
      }),
      ...Object.fromEntries(
        Object.entries(patches).map(([path, [given]]) => [
          path,
          (): Said => ({
            body: Buffer.from(`--- ${path}\n+++ b/x\n`),
            headers: given === '' ? {} : { 'content-type': given },
          }),
        ]),
      ),
    },
    NO_CATALOG,
  )
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const links = (await (await made.ask('/v1/packages/p/artifacts/patches')).json()) as string[]
  const found = await Promise.all(links.map(typeAt))
  expect(found).toEqual(Object.values(patches).map(([, served]) => served))
})

test('an answer in JSON that names no document keeps its type and its bytes', async () => {
  const item = { id: 'p', ecosystem: 'npm', name: 'n', version: '1.0', arch: 'noarch' }
  const path = '/v1/packages/p/artifacts/patches'
  const body = JSON.stringify({ patches: [{ name: '1.patch', content: '--- a\n' }] })
  const made = await plainBench(
    {
      '/v1/packages/': listOf(item),
      '/v1/packages/p/': () => ({ body: item }),
      [path]: () => typed(body, 'application/vnd.patches.v1+json'),
    },
    NO_CATALOG,
  )
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const answer = await made.ask(path)
  expect(answer.headers.get('content-type')).toBe('application/vnd.patches.v1+json')
  expect(await answer.text()).toBe(body)
})

longTest('another type of the same bytes is a change for a reconcile, a sync and a delta', async () => {
  const clock = { now: Date.now() - 100 * HOUR }
  const sbom = '/v1/tags/a/sbom'
  const vex = '/v1/tags/a/vex'
  const made = await bench(
    ['a'],
    {
      [sbom]: naming('/documents/a'),
      [vex]: () => typed(VEX, 'application/json'),
      '/documents/a': () => typed(SBOM, INFERRED),
    },
    () => clock.now,
  )
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const there = below()
  const to = folder()
  const full = await carry(made.dir, to)
  await there.take(full.files)
  made.say({
    [vex]: () => typed(VEX, 'application/vnd.openvex+json'),
    '/documents/a': () => typed(SBOM, VERSIONED),
  })
  clock.now += 25 * HOUR
  expect((await made.run('catalog', { kind: 'reconcile' })).facts).toMatchObject({ changed: 1 })
  const typeOf = async (path: string) => (await made.ask(path)).headers.get('content-type')
  expect(await typeOf(vex)).toBe('application/vnd.openvex+json')
  made.say({ '/v1/tags/': listOf({ id: 'a', updated: 1 }) })
  await made.run('catalog')
  expect(await typeAt(await linkOf(made, sbom))).toBe(VERSIONED)
  expect((await made.run('catalog', { kind: 'reconcile' })).facts).toMatchObject({ due: 0 })

  const delta = await carry(made.dir, to, { since: String(full.manifest.sequence) })
  expect(delta.manifest.kind).toBe('delta')
  await there.take(delta.files)
  expect(there.digest()).toBe(made.store.carried.digestSources().digest)
  const up = await serveFolder(made.dir, made.config)
  const down = await serveFolder(there.dir, there.config)
  expect(comparable(await down(vex))).toEqual(comparable(await up(vex)))
  const [one = '', other = ''] = [...linksIn(await up(sbom)), ...linksIn(await down(sbom))]
  const document = await down(other)
  expect(document.headers['content-type']).toBe(VERSIONED)
  expect(comparable(document)).toEqual(comparable(await up(one)))
})

test('a stored type that differs from the published one is found by verify', async () => {
  const made = await bench(['a'], { '/v1/tags/a/sbom': () => typed(SBOM, VERSIONED) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const verify = async () => {
    const db = openReader(made.dir)
    if (db === null) throw new Error('no database')
    try {
      return await verifyStore(db, made.dir)
    } finally {
      db.close()
    }
  }
  const sound = await verify()
  expect([sound.catalog.answers, sound.catalog.documents]).toEqual([[], []])
  const db = new Database(databasePath(made.dir))
  const sql = "UPDATE catalog_answer SET links = replace(links, 'version=1.6', 'version=1.5')"
  expect(db.prepare(`${sql} WHERE links <> '[]'`).run().changes).toBe(1)
  db.close()
  expect(JSON.stringify(await verify())).toContain('the stored catalog differs from the published snapshot')
})

longTest('a damaged document is a 503 in every content coding, and for a part of it', async () => {
  const made = await bench(['a'], {
    '/v1/tags/a/sbom': naming('/documents/a'),
    '/documents/a': () => typed(SBOM, INFERRED),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const url = await linkOf(made, '/v1/tags/a/sbom')
  const answers = async (): Promise<number[]> =>
    Promise.all(
      [{ 'accept-encoding': 'gzip' }, { 'accept-encoding': 'identity' }, { range: 'bytes=1-2' }].map(
        async (headers) => (await fetch(url, { headers })).status,
      ),
    )
  expect(await answers()).toEqual([200, 200, 206])
  const db = new Database(databasePath(made.dir))
  db.exec('UPDATE catalog_chunk SET bytes = CAST(substr(bytes, 1, 12) || zeroblob(length(bytes) - 12) AS BLOB)')
  db.close()
  await expect.poll(answers).toEqual([503, 503, 503]) // when the snapshot that is read has moved
})
