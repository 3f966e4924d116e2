import { readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { operatorName } from '../../../src/base/domain/run-facts.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { noteNumbers, settleCopies } from '../../../src/store/given-numbers.ts'
import type { Finished } from '../../support/command.ts'
import { type World, openWorld } from '../../support/daemons.ts'
import { commandHost } from '../../support/hosted.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

const run = commandHost()
let world: World

beforeEach(async () => {
  world = await openWorld({ records: 5, service: false }, () => ({
    LIMIT_SYNC_CATCH_UP: 'false',
  }))
})

afterEach(() => world.close())

function keys(...args: string[]): Promise<Finished> {
  return run(['keys', ...args], world.env, world.dir)
}

describe('the command keys', () => {
  longTest('prints a created key on standard output, and never lists it', async () => {
    expect((await keys('list')).out).toContain('patchmirror keys create')
    const { code, out, err } = await keys('create', '--name', 'build server')
    expect(code).toBe(0)
    expect(out).toMatch(/^pmk_[\w-]{32}\n$/)
    expect(err).toContain('key 1 is made')
    const table = await keys('list')
    expect(table.out).toMatch(
      /^id +name +key +created +created by +revoked +revoked by\n1 +build server +pmk_.{4}… .*- +-\n$/,
    )
    const [listed] = JSON.parse((await keys('list', '--json')).out) as Record<string, unknown>[]
    expect(listed).toMatchObject({ id: 1, name: 'build server', revokedAt: null })
    expect(table.out + JSON.stringify(listed)).not.toContain(out.trim().slice(8))
  })

  test('writes with create --out the key into a private new file, and does not print it', async () => {
    const file = join(world.dir, 'ci.key')
    const { code, out, err } = await keys('create', '--out', file)
    expect([code, out]).toEqual([0, ''])
    const key = readFileSync(file, 'utf8')
    expect(key).toMatch(/^pmk_[\w-]{32}\n$/)
    expect(err).not.toContain(key.trim())
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('never overwrites a file or follows a link with create --out, and creates no key then', async () => {
    symlinkSync(join(world.dir, 'elsewhere'), join(world.dir, 'link'))
    await keys('create', '--out', join(world.dir, 'there'))
    for (const file of ['there', 'link', 'no/folder']) {
      const { code, err } = await keys('create', '--out', join(world.dir, file))
      expect([file, code]).toEqual([file, 2])
      expect(err).toContain('--out')
    }
    expect(JSON.parse((await keys('list', '--json')).out)).toHaveLength(1)
    expect(readdirSync(world.dir)).not.toContain('elsewhere')
  })

  test('leaves no file when a key cannot be created', async () => {
    const file = join(world.dir, 'ci.key')
    const blocked = { ...world.env, PATCHMIRROR_DATA_DIR: '/proc/none' }
    expect((await run(['keys', 'create', '--out', file], blocked, world.dir)).code).toBe(1)
    expect(readdirSync(world.dir)).not.toContain('ci.key')
  })

  longTest('revokes a key once or twice, and exits 1 for an unknown one', async () => {
    await keys('create', '--name', 'ci')
    expect(await keys('revoke', '1')).toMatchObject({ code: 0, out: 'key 1 (ci) is revoked\n' })
    const again = await keys('revoke', '1')
    const by = operatorName({})
    const [listed] = JSON.parse((await keys('list', '--json')).out) as object[]
    expect(listed).toMatchObject({ createdBy: by, revokedBy: by })
    expect(again.out).toContain(`Z, by ${by}`)
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('revoked already')])
    for (const id of ['2', '0', 'x', '-1', '1.0', '0x1', '1e0', ' ']) expect((await keys('revoke', id)).code).toBe(1)
  })

  test('exits 2 for a name that could forge a line of the list or is too long', async () => {
    for (const name of ['a\nb', 'a\u202eb', '\u001b[2J', 'x'.repeat(81)])
      expect((await keys('create', '--name', name)).code).toBe(2)
  })

  test('lists none as if there were none where the database is lost, and says of a new one that others were in another', async () => {
    const dir = join(world.dir, 'data')
    await keys('create')
    noteNumbers(dir)
    for (const name of readdirSync(dir)) if (name.startsWith('mirror.db')) rmSync(join(dir, name))
    writeFileSync(join(dir, 'local.key'), 'pmk_x')
    const lost = await keys('list')
    expect([lost.code, lost.out]).toEqual([3, ''])
    expect(lost.err).toContain('mirror.db is missing, and local.key is left: it may have been lost')
    openWriter(dir).close()
    settleCopies(dir, { now: Date.now(), before: 0 })
    expect((await keys('list')).err).toMatch(/20\S+ .*mirror\.db was found to be another one than before/)
  })

  test('exits 2 without a subcommand and for an unknown one', async () => {
    expect((await keys()).code).toBe(2)
    expect((await keys('lst')).code).toBe(2)
    expect((await keys('revoke')).code).toBe(2)
  })
})

describe('a running mirror', () => {
  bothTest('accepts a key that is created meanwhile, and refuses it once it is revoked', async () => {
    const { url, ...daemon } = await world.host()
    const file = join(world.dir, 'data', 'local.key')
    const said = await daemon.said(/a key for the private paths was created: it is in [^"]*local\.key"/)
    await daemon.said(/take a key \(1 valid\)/)
    const first = readFileSync(file, 'utf8').trim()
    expect([statSync(file).mode & 0o777, said.includes(first)]).toEqual([0o600, false])
    expect((await keys('list')).out).toMatch(/^1 +local\.key +pmk_.{4}… .*- +- +-$/m)
    const ask = async (key?: string): Promise<number> =>
      (await fetch(`${url}/v1/none`, key === undefined ? {} : bearer(key))).status
    expect([await ask(), await ask(first)]).toEqual([401, 404])
    const key = (await keys('create')).out.trim()
    expect(await ask(key)).toBe(404)
    await daemon.said(new RegExp(`key 2 was created by ${operatorName({})}`))
    await keys('revoke', '2')
    await daemon.said(new RegExp(`key 2 was revoked by ${operatorName({})}`))
    expect([await ask(key), await ask(first)]).toEqual([401, 404])
    expect((await keys('revoke', '1')).code).toBe(0)
    expect([await ask(first), readdirSync(join(world.dir, 'data'))]).toEqual([
      401,
      expect.not.arrayContaining(['local.key']),
    ])
    expect((await fetch(`${url}/-/health`)).status).toBe(200)
    if (!LONG) return
    await daemon.close()
    const again = await world.host()
    await again.said(/there is no key yet|take a key \(0 valid\)/)
    expect(readdirSync(join(world.dir, 'data'))).not.toContain('local.key')
    expect((await fetch(`${again.url}/v1/none`)).status).toBe(401)
  })

  longTest('creates no key when keys are set, prints none, and warns of server.openLoopback', async () => {
    const secret = 'Zk3v9wq7Rt5y2Lm8'
    const more = {
      PATCHMIRROR_SERVER_KEYS: secret,
      PATCHMIRROR_SERVER_OPEN_LOOPBACK: 'true',
      PATCHMIRROR_LOG_LEVEL: 'trace',
    }
    const daemon = await world.serve(more)
    await daemon.said(/"level":"warn",[^\n]*server\.openLoopback: [^\n]* without a key/)
    expect(readdirSync(join(world.dir, 'data'))).not.toContain('local.key')
    const ask = async (headers: Record<string, string> = {}): Promise<number> =>
      (await fetch(`${daemon.url}/v1/none`, { headers })).status
    expect(await ask()).toBe(404)
    const proxied = { via: '1.1 p' }
    expect([await ask(proxied), await ask({ ...proxied, ...bearer(secret).headers })]).toEqual([...[401, 404]])
    expect(await ask({ ...proxied, ...bearer(`${secret}x`).headers })).toBe(401)
    const shown = await (await fetch(`${daemon.url}/-/status`)).text()
    const config = await run(['config'], { ...world.env, ...more }, world.dir)
    daemon.child.kill('SIGTERM')
    const { out, err } = await daemon.finished
    expect(err).toContain('server.openLoopback')
    expect(out + err + shown + config.out).not.toContain(secret)
  })
})

function bearer(key: string): { headers: { Authorization: string } } {
  return { headers: { Authorization: `Bearer ${key}` } }
}
