import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import { FILLED_AT, type Served, closeAll, serve } from '../server/served.ts'
import { LONG, bothTest, test } from '../support/tables.ts'
import { findTool, getOver, runTool, startTool } from '../support/tools.ts'

/*
 * The programs that people have, as Debian ships them, against the mirror. None is installed here: what is not on the
 * machine is skipped by name. `.ci/run` installs them all.
 */

const RECORDS = records(400)

/** Sixteen records with this many random bytes in each. */
function records(size: number): Record<string, string> {
  const pairs = Array.from({ length: 16 }, (_, i): [string, string] => {
    const id = `ROOT-OS-DEBIAN-12-CVE-2024-${i}`
    const details = randomBytes(size).toString('base64')
    return [id, JSON.stringify({ id, modified: '2026-01-01T00:00:00Z', affected: [], details })]
  })
  return Object.fromEntries(pairs)
}

const ZIP = '/external/osv/all.zip'
const INDEX = '/external/osv/all.json'

let served: Served
let dir: string
let archive: Buffer
let url: string

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-clients-'))
  const fill: Parameters<typeof serve>[0] = (store) => {
    archive = store.publishOsv(RECORDS).archive
  }
  served = await serve(fill, { debug: true })
  url = `http://127.0.0.1:${served.port}`
})

afterEach(async () => {
  vi.unstubAllEnvs()
  await closeAll()
  rmSync(dir, { recursive: true, force: true })
})

/** Another snapshot, with one record more. */
function publishMore(): { archive: Buffer; index: string } {
  const records = { ...RECORDS, 'ROOT-NEW': '{"id":"ROOT-NEW","modified":"2026-02-01T00:00:00Z"}' }
  const published = served.store.publishOsv(records, FILLED_AT + 3_600_000)
  served.server.snapshotChanged()
  return published
}

/** Status codes of the requests that the mirror answered since the last call. */
function answered(): number[] {
  const lines = served.requests.splice(0) as { statusCode: number }[]
  return lines.map(({ statusCode }) => statusCode)
}

/** A test that needs a command: skipped by name, with the reason, where that is not installed. */
function withTool(
  names: readonly string[],
  title: string,
  body: (path: string) => Promise<void>,
  register: typeof test = test,
): void {
  const path = findTool(...names)
  const label = `${names[0] ?? ''}: ${title}`
  if (path === null) register.skip(`${label} (skipped: ${names.join(', ')} is not installed)`)
  else register(label, () => body(path))
}

/** As `withTool`, in the long suite alone: for what waits until a cache has expired, or fetches megabytes. */
const withToolInLong = (names: readonly string[], title: string, body: (path: string) => Promise<void>): void => {
  if (LONG) withTool(names, title, body, bothTest)
}

describe('an archive, read by', () => {
  beforeEach(() => writeFileSync(join(dir, 'all.zip'), archive))

  withTool(['unzip'], 'finds every member valid, and reads one', async (unzip) => {
    expect(await runTool(unzip, ['-tq', 'all.zip'], { cwd: dir })).toMatchObject({ code: 0 })
    const [id = '', text] = Object.entries(RECORDS)[3] ?? []
    const { out } = await runTool(unzip, ['-p', 'all.zip', `${id}.json`], { cwd: dir })
    expect(out).toBe(text)
  })

  withTool(['7z', '7zz'], 'finds every member valid', async (sevenZip) => {
    const { code, out } = await runTool(sevenZip, ['t', 'all.zip'], { cwd: dir })
    expect(code).toBe(0)
    expect(out).toContain('Everything is Ok')
    expect(out).toContain('Files: 16')
  })
})

describe('a download by', () => {
  const local = (name: string): Buffer => readFileSync(join(dir, name))

  withTool(['wget'], 'fetches with -N once, then asks by date, and fetches a new archive', async (wget) => {
    const fetchNew = () => runTool(wget, ['-q', '-N', url + ZIP], { cwd: dir })
    expect(await fetchNew()).toMatchObject({ code: 0 })
    expect(local('all.zip').equals(archive)).toBe(true)
    expect(answered()).toEqual([200])
    expect(statSync(join(dir, 'all.zip')).mtimeMs).toBe(FILLED_AT)
    expect(await fetchNew()).toMatchObject({ code: 0 })
    expect(answered()).toEqual([304])
    const newer = publishMore()
    expect(await fetchNew()).toMatchObject({ code: 0 })
    expect(local('all.zip').equals(newer.archive)).toBe(true)
  })

  withTool(
    ['curl'],
    'asks with -z by date, with --etag-compare by ETag, and accepts gzip with --compressed',
    async (curl) => {
      const get = (...args: string[]) => runTool(curl, ['-fsS', ...args], { cwd: dir })
      const code = ['-w', '%{http_code} %{size_download}']
      await get('-R', '-o', 'all.json', '--etag-save', 'tag', url + INDEX)
      expect((await get('-z', 'all.json', '-o', 'x', ...code, url + INDEX)).out).toBe('304 0')
      expect((await get('--etag-compare', 'tag', '-o', 'x', ...code, url + INDEX)).out).toBe('304 0')
      const head = await get('--compressed', '-D', '-', '-o', 'packed', url + INDEX)
      expect(head.out).toMatch(/^content-encoding: gzip\r$/im)
      expect(local('packed').equals(local('all.json'))).toBe(true)
      const zip = await get('--compressed', '-D', '-', '-o', 'all.zip', url + ZIP)
      expect(zip.out).not.toMatch(/content-encoding/i)
      expect(local('all.zip').equals(archive)).toBe(true)
    },
  )

  withTool(['curl'], 'resumes with -C, and If-Range ensures one version', async (curl) => {
    const get = (...args: string[]) => runTool(curl, ['-fsS', ...args], { cwd: dir })
    writeFileSync(join(dir, 'all.zip'), archive.subarray(0, 1000))
    await get('-C', '-', '-o', 'all.zip', url + ZIP)
    expect(answered()).toEqual([206])
    expect(local('all.zip').equals(archive)).toBe(true)
    const { headers } = await served.head(ZIP)
    const tag = String(headers.etag)
    answered()
    const ranged = ['-r', '0-99', '-o', 'part', '-H', `If-Range: ${tag}`, url + ZIP]
    await get(...ranged)
    expect(local('part')).toHaveLength(100)
    const newer = publishMore()
    await get(...ranged)
    expect(local('part').equals(newer.archive)).toBe(true)
    expect(answered()).toEqual([206, 200])
  })

  withToolInLong(['aria2c'], 'fetches several ranges at once, and then asks by date', async (aria2c) => {
    const large = served.store.publishOsv(records(230_000), FILLED_AT + 3_600_000).archive
    served.server.snapshotChanged()
    const args = ['-q', '-x4', '-s4', '-k1M', '--no-conf', '--file-allocation=none', url + ZIP]
    expect(await runTool(aria2c, args, { cwd: dir })).toMatchObject({ code: 0 })
    expect(local('all.zip').equals(large)).toBe(true)
    expect(answered().filter((status) => status === 206).length).toBeGreaterThan(1)
    const again = ['--conditional-get=true', '--allow-overwrite=true', '--remote-time=true', ...args]
    expect(await runTool(aria2c, again, { cwd: dir })).toMatchObject({ code: 0 })
    expect(answered()).toContain(304)
  })
})

/** Asks a cache in front of the mirror over its socket, from when it listens. */
function cacheAt(socket: string) {
  return {
    up: () =>
      expect
        .poll(() =>
          getOver(socket, '/-/health').then(
            ({ status }) => status,
            () => 0,
          ),
        )
        .toBe(200),
    get: (path: string, headers?: Record<string, string>) => getOver(socket, path, headers),
  }
}

/** What is to be had through any cache: each coding its own, ranges, the archive as it is. */
async function passesThrough(get: ReturnType<typeof cacheAt>['get'], index: string): Promise<void> {
  const packed = await get(INDEX, { 'accept-encoding': 'gzip' })
  expect(packed.headers['content-encoding']).toBe('gzip')
  expect(gunzipSync(packed.body).toString()).toBe(index)
  const plain = await get(INDEX)
  expect(plain.headers['content-encoding']).toBeUndefined()
  expect(plain.body.toString()).toBe(index)
  const zip = await get(ZIP, { 'accept-encoding': 'gzip' })
  expect(zip.headers['content-encoding']).toBeUndefined()
  expect(zip.body.equals(archive)).toBe(true)
  const part = await get(ZIP, { range: 'bytes=10-19' })
  expect([part.status, part.body]).toEqual([206, archive.subarray(10, 20)])
}

describe('the cache of', () => {
  let stop: (() => Promise<void>) | null = null
  afterEach(async () => {
    await stop?.()
    stop = null
  })

  withToolInLong(['nginx'], 'stores answers, separates the content codings, and revalidates', async (nginx) => {
    const socket = join(dir, 'nginx.sock')
    writeFileSync(join(dir, 'nginx.conf'), nginxSettings(socket, url))
    const args = ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', 'stderr', '-g', 'daemon off;']
    const started = startTool(nginx, args)
    stop = () => started.stop()
    const { up, get } = cacheAt(socket)
    await up()
    const { body } = await served.get(INDEX)
    await passesThrough(get, body.toString())
    await get(INDEX)
    answered()
    const state = async () => (await get(INDEX)).headers['x-cache']
    await expect.poll(state).toBe('REVALIDATED')
    expect(answered()).toContain(304)
    const { index } = publishMore()
    await expect.poll(async () => (await get(INDEX)).body.toString()).toBe(index)
  })

  withTool(['nginx'], 'answers conditions and ranges with default settings, and never with old data', async (nginx) => {
    const plain = await serve((store) => void store.publishOsv(RECORDS), { debug: true })
    const socket = join(dir, 'plain.sock')
    const settings = nginxSettings(socket, `http://127.0.0.1:${plain.port}`)
    writeFileSync(join(dir, 'plain.conf'), settings.replace(/proxy_(http_version|cache_rev).*/g, ''))
    const args = ['-p', dir, '-c', join(dir, 'plain.conf'), '-e', 'stderr', '-g', 'daemon off;']
    const started = startTool(nginx, args)
    stop = () => started.stop()
    const { up, get } = cacheAt(socket)
    await up()
    const record = `/external/osv/${Object.keys(RECORDS)[0] ?? ''}.json`
    for (const path of [INDEX, ZIP, record, `${INDEX}?again`]) {
      const first = await get(path)
      expect([first.status, first.headers['x-accel-expires']]).toEqual([200, undefined])
      const { etag, 'last-modified': changed } = first.headers
      expect((await get(path, { 'if-none-match': String(etag) })).status, path).toBe(304)
      expect((await get(path, { 'if-modified-since': String(changed) })).status, path).toBe(304)
    }
    const part = await get(ZIP, {
      range: 'bytes=1-4',
      'if-range': String((await get(ZIP)).headers['etag']),
    })
    expect([part.status, part.body.length]).toEqual([206, 4])
    const more = { ...RECORDS, 'ROOT-NEW': '{"id":"ROOT-NEW","modified":"2026-02-01T00:00:00Z"}' }
    const { index, archive: newer } = plain.store.publishOsv(more, FILLED_AT + 3_600_000)
    plain.server.snapshotChanged()
    expect((await get(INDEX)).body.toString()).toBe(index)
    expect((await get(ZIP)).body.equals(newer)).toBe(true)
  })

  withToolInLong(['varnishd'], 'stores answers, revalidates, and serves ranges', async (varnishd) => {
    const socket = join(dir, 'varnish.sock')
    writeFileSync(join(dir, 'mirror.vcl'), varnishSettings(served.port))
    const args = ['-j', 'none', '-F', '-n', join(dir, 'varnish'), '-s', 'malloc,32m', '-a', `${socket},mode=666`]
    const started = startTool(varnishd, [...args, '-f', join(dir, 'mirror.vcl')])
    stop = () => started.stop()
    const { up, get } = cacheAt(socket)
    await up()
    const { body } = await served.get(INDEX)
    await passesThrough(get, body.toString())
    answered()
    await expect.poll(async () => (await get(INDEX), answered())).toContain(304)
    const { index } = publishMore()
    await expect.poll(async () => (await get(INDEX)).body.toString()).toBe(index)
  })
})

function nginxSettings(socket: string, origin: string): string {
  return `
user root;
worker_processes 1;
pid ${dir}/nginx.pid;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/fcgi;
  uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi;
  proxy_cache_path ${dir}/cache keys_zone=mirror:1m;
  server {
    listen unix:${socket};
    location / {
      proxy_pass ${origin};
      proxy_http_version 1.1;
      proxy_cache mirror;
      proxy_cache_revalidate on;
      add_header X-Cache $upstream_cache_status;
    }
  }
}
`
}

/** Everything expires at once and is kept to be asked for by its tag: each look revalidates. */
function varnishSettings(port: number): string {
  return `vcl 4.1;
backend mirror { .host = "127.0.0.1"; .port = "${port}"; }
sub vcl_backend_response {
  set beresp.ttl = 0.1s;
  set beresp.grace = 0s;
  set beresp.keep = 60s;
}
`
}
