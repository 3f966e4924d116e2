import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type Hosted, type World, openWorld } from '../support/daemons.ts'
import { findTool, startTool } from '../support/tools.ts'
import { freePort } from '../support/free-ports.ts'

const PUBLICATIONS = 100
const RECORDS = 25
const INDEX = '/external/osv/all.json'

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-edges-'))
const ends: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const end of ends.reverse()) await end()
  rmSync(dir, { recursive: true, force: true })
})

const varnishd = findTool('varnishd')
const hasXkey = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib'].some((lib) =>
  existsSync(join(lib, 'varnish/vmods/libvmod_xkey.so')),
)
const nginx = findTool('nginx')

/** The block of the guide in this language, with the port of the mirror. */
function recipe(language: string, port: number): string {
  const page = readFileSync(new URL('../../docs/guides/caches.md', import.meta.url), 'utf8')
  const [, block = ''] = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(page) ?? []
  expect(block).toContain('"8080"')
  return block.replace('"8080"', `"${port}"`)
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

async function ask(url: string): Promise<Answer> {
  const response = await fetch(url)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const sha = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A daemon over a sandbox, with these settings of edges. */
async function mirror(env: Record<string, string>): Promise<{ world: World; daemon: Hosted }> {
  const world = await openWorld({ records: RECORDS, large: 0, service: false })
  ends.push(() => world.close())
  const daemon = await world.host(env)
  await expect.poll(async () => (await ask(`${daemon.url}${INDEX}`)).status).toBe(200)
  return { world, daemon }
}

/** Whether Varnish answered from its cache: it then names the request that brought the answer, too. */
function isHit({ headers }: { readonly headers: Headers }): boolean {
  return /^\d+ \d+$/.test(headers.get('x-varnish') ?? '')
}

/**
 * Publishes again and again. As soon as the edge shows the new index, the records behind it must be the new ones, each as
 * the index lists it.
 */
async function publishOften(world: World, daemon: Hosted, edge: string, isVarnish: boolean): Promise<number> {
  const { feed } = world.sandbox
  let hits = 0
  for (let publication = 0; publication < PUBLICATIONS; publication++) {
    const changed = feed.change(3)
    const ended = daemon.next('osv')
    daemon.agent.requestSync('osv', 'sync')
    expect(await ended).toMatchObject({ state: 'complete' })
    const index = feed.index().toString()
    await expect.poll(async () => (await ask(edge + INDEX)).text).toBe(index)
    for (const id of feed.ids()) {
      const { status, headers, text } = await ask(`${edge}/external/osv/${encodeURIComponent(id)}.json`)
      const isNew = changed.includes(id)
      expect([publication, id, isNew, status, sha(text)]).toEqual([
        ...[publication, id, isNew, 200, sha(feed.record(id).toString())],
      ])
      if (isHit({ headers })) hits++
    }
    let again = await ask(edge + INDEX)
    // A purge may be done only after some requests with the new index: Varnish then has it to ask for again.
    const isKept = async (): Promise<boolean> => {
      again = await ask(edge + INDEX)
      return isHit(again)
    }
    if (isVarnish) await expect.poll(isKept).toBe(true)
    expect([again.text === index, again.headers.get('cache-control')]).toEqual([
      ...[true, 'public, max-age=0, must-revalidate'],
    ])
    if (isHit(again)) hits++
  }
  return hits
}

describe.runIf(varnishd !== null && hasXkey)('Varnish with xkey, as the guide configures it', () => {
  test(`shows no old record beside a new index in ${PUBLICATIONS} publications, and keeps what is not purged`, async () => {
    const port = await freePort()
    const edge = `http://127.0.0.1:${port}`
    const { world, daemon } = await mirror({
      PATCHMIRROR_EDGE_MAX_AGE_SECONDS: '3600',
      PATCHMIRROR_EDGE_TAG_HEADER: 'xkey',
      PATCHMIRROR_EDGE_PURGE: `${edge}/`,
      PATCHMIRROR_VIEWS_SERVE: 'query,vex,findings',
    })
    const file = join(dir, 'edge.vcl')
    writeFileSync(file, recipe('vcl', Number(new URL(daemon.url).port)))
    const args = ['-j', 'none', '-F', '-n', join(dir, 'varnish'), '-s', 'malloc,32m']
    const started = startTool(varnishd ?? '', [...args, '-a', `127.0.0.1:${port}`, '-f', file])
    ends.push(() => started.stop())
    await expect
      .poll(() =>
        ask(edge + INDEX).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200)
    const hits = await publishOften(world, daemon, edge, true)
    // Each publication purges all records, so only the index is asked for again.
    expect(hits).toBeGreaterThanOrEqual(PUBLICATIONS)
    const feedsBefore = await ask(`${edge}/external/patch_feed`)
    const feedsAfter = await ask(`${edge}/external/patch_feed`)
    expect(feedsAfter.text).toBe(feedsBefore.text)
    expect(feedsAfter.headers.get('x-varnish')).toMatch(/^\d+ \d+$/)
  })
})

describe.runIf(nginx !== null)('nginx that asks each time', () => {
  test(`shows no old record beside a new index in ${PUBLICATIONS} publications`, async () => {
    const port = await freePort()
    const { world, daemon } = await mirror({ PATCHMIRROR_EDGE_MAX_AGE_SECONDS: '3600' })
    const file = join(dir, 'nginx.conf')
    writeFileSync(file, nginxSettings(port, daemon.url))
    const started = startTool(nginx ?? '', ['-c', file, '-p', dir, '-e', join(dir, 'error.log')])
    ends.push(() => started.stop())
    const edge = `http://127.0.0.1:${port}`
    await expect
      .poll(() =>
        ask(edge + INDEX).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200)
    await publishOften(world, daemon, edge, false)
  })
})

function nginxSettings(port: number, origin: string): string {
  return `
daemon off; worker_processes 1; pid ${dir}/nginx.pid; user root;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/fcgi;
  uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi;
  proxy_cache_path ${dir}/cache keys_zone=patchmirror:1m max_size=100m;
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass ${origin};
      proxy_http_version 1.1;
      proxy_cache patchmirror;
      proxy_cache_revalidate on;
    }
  }
}`
}
