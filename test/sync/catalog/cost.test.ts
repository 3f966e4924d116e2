import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect } from 'vitest'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import type { Bench } from '../../support/mirror.ts'
import { contentsOf } from '../fixtures.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import { DOCUMENT, SMALL, TAG, asked, bench, differences, lackingOf, mirrored } from './fixtures.ts'
import { countCatalog } from '../../support/stored-counts.ts'

const LISTS = ['/v1/images/', '/v1/packages/', '/v1/patches', '/v1/subscriptions/', '/v1/tags/']
const ALONE = ['/v1/me', '/v1/orgs/']

describe('an unchanged account', () => {
  bothTest.each(telling(['wire', 'other'] as const, 'wire'))(
    'costs the requests of its lists and two items, and writes only their dates (%s shape)',
    async (shape) => {
      const made = await mirrored({ ...SMALL, shape })
      const before = contentsOf(made.dir)
      const snapshot = made.store.snapshots.readSnapshot('catalog')
      for (let i = 0; i < 2; i++) {
        made.sandbox.requests.clear()
        const report = await made.run('catalog')
        expect(report).toMatchObject({ state: 'complete', message: 'nothing changed' })
        expect(asked(made).sort()).toEqual([...LISTS, ...ALONE].sort())
        expect(contentsOf(made.dir)).toEqual(before)
      }
      expect(made.store.snapshots.readSnapshot('catalog')).toEqual(snapshot)
    },
  )

  longTest('costs no more where answers have no validators', async () => {
    const made = await bench(SMALL, { sandbox: { validators: false } })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    made.sandbox.requests.clear()
    const before = contentsOf(made.dir)
    expect(await made.run('catalog')).toMatchObject({ message: 'nothing changed' })
    expect(asked(made).sort()).toEqual([...LISTS, ...ALONE].sort())
    expect(contentsOf(made.dir)).toEqual(before)
  })
})

longTest('one changed tag costs its own requests and the list of its image', async () => {
  const made = await mirrored({ ...SMALL, images: 5, tags: 10 })
  const { service } = made.sandbox
  const tag = service.ids('tags')[7] ?? ''
  service.rotateArtifact('tag', tag, 'sbom')
  const { image } = service.read('tags', tag) as { image: { repository: string } }
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const own = [`/v1/tags/${tag}`, ...['sbom', 'vex', 'provenance'].map((kind) => `/v1/tags/${tag}/${kind}`)]
  const api = asked(made, 'api')
  expect(api.sort()).toEqual([...LISTS, ...ALONE, ...own, `/v1/images/${image.repository}/tags`].sort())
  expect(asked(made, 'artifacts').every((path) => DOCUMENT.test(path))).toBe(true)
  expect(asked(made, 'catalog')).toEqual([])
  expect(await differences(made)).toEqual([])
})

longTest('one changed tag writes no other item of its list, though the total of every page differs', async () => {
  const made = await mirrored(SMALL)
  const places = () => {
    const { id = 0 } = made.store.catalog.readList('/v1/tags') ?? {}
    return new Map(rowsOf(made.dir, id))
  }
  const before = places()
  made.sandbox.service.addTag()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const after = places()
  expect(after.size).toBe(before.size + 1)
  expect([...before].filter(([item, rowid]) => after.get(item) !== rowid)).toEqual([])
  expect(await differences(made)).toEqual([])
})

function rowsOf(dir: string, list: number): [string, number][] {
  const db = new Database(databasePath(dir), { readonly: true })
  try {
    const sql = 'SELECT id, rowid FROM catalog_entry WHERE list = ?'
    return db.prepare<[number], [string, number]>(sql).raw().all(list)
  } finally {
    db.close()
  }
}

test('one changed ticket costs only the lists', async () => {
  const made = await mirrored()
  made.sandbox.service.addTicket()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(asked(made).sort()).toEqual([...LISTS, ...ALONE].sort())
})

longTest('a replaced artifact is fetched when its owner changes, or with --full', async () => {
  const made = await mirrored()
  const { service } = made.sandbox
  const [tag = ''] = service.ids('tags')
  service.rotateArtifact('tag', tag, 'vex', { silent: true })
  expect(await made.run('catalog')).toMatchObject({ message: 'nothing changed' })
  expect(await differences(made)).toEqual([`/v1/tags/${tag}/vex`])
  made.sandbox.requests.clear()
  expect(await made.run('catalog', { full: true })).toMatchObject({ state: 'complete' })
  expect(asked(made).filter((path) => TAG.test(path))).toHaveLength(service.ids('tags').length)
  expect(await differences(made)).toEqual([])
})

describe('a dry run', () => {
  test('requests the lists, reports what is due, and writes nothing', async () => {
    const made = await mirrored()
    const { service } = made.sandbox
    const [tag = '', gone = ''] = service.ids('tags')
    service.change('tags', tag)
    service.remove('tags', gone)
    const before = contentsOf(made.dir)
    const report = await made.run('catalog', { dryRun: true })
    expect(report).toMatchObject({ id: 0, state: 'complete' })
    expect(Number(report.facts['due'])).toBeGreaterThanOrEqual(4)
    expect(Number(report.facts['plannedRemoved'])).toBeGreaterThanOrEqual(4)
    expect(asked(made).filter((path) => path.startsWith(`/v1/tags/${tag}`))).toEqual([])
    expect(contentsOf(made.dir)).toEqual(before)
  })

  test('of an empty mirror leaves it empty', async () => {
    const made = await bench()
    expect(await made.run('catalog', { dryRun: true })).toMatchObject({ state: 'complete' })
    expect(countCatalog(made.dir)).toEqual({ entries: 0, answers: 0, documents: 0 })
    expect(made.store.snapshots.readSnapshot('catalog')).toBeNull()
  })
})

/** Every byte of the data folder. */
function allBytes({ dir }: Bench): Buffer {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  return Buffer.concat(files.map(({ parentPath, name }) => readFileSync(join(parentPath, name))))
}

describe('the data folder', () => {
  const SECRETS = ['sk-in-a-list', 'sk-in-detail', 'whsec-1', 'tok-deep', 'pw-nested', 'hash-1', 'camel-1']
  const PERSONAL = {
    PATCHMIRROR_CATALOG_PERSONAL_DATA: 'apiKeys,users',
  }

  longTest('contains no secret of the mirror or of upstream', async () => {
    const made = await mirrored({ ...SMALL, users: 3 }, PERSONAL)
    const { service } = made.sandbox
    const [key = ''] = service.ids('apiKeys')
    const [user = ''] = service.ids('users')
    const [subscription = ''] = service.ids('subscriptions')
    service.change('apiKeys', key, {
      key: SECRETS[0],
      key_hash: 5,
      webhook: { secret: SECRETS[2] },
    })
    service.change('users', user, {
      auth: [{ access_token: SECRETS[3], deep: { password: SECRETS[4] } }],
    })
    service.change('subscriptions', subscription, {
      hash: SECRETS[5],
      clientSecret: SECRETS[6],
      tokens: [SECRETS[1]],
    })
    for (const source of ['catalog', 'identity'] as const) {
      const report = await made.run(source)
      expect([report.state, lackingOf(report)]).toEqual(['complete', []])
    }
    const bytes = allBytes(made)
    for (const secret of [...SECRETS, SANDBOX_KEYS.admin]) expect(bytes.includes(secret)).toBe(false)
    const answers = await Promise.all(
      ['/v1/api_keys/', `/v1/api_keys/${key}/`, '/v1/users', '/v1/subscriptions/'].map(async (path) =>
        (await made.ask(path)).text(),
      ),
    )
    for (const secret of SECRETS) expect(answers.join('')).not.toContain(secret)
    expect(answers[1]).toContain('"key_hash":5')
    expect(answers[2]).toContain('@example.com')
  })

  longTest('contains no personal data by default', async () => {
    const made = await mirrored({ ...SMALL, users: 3 })
    const { service } = made.sandbox
    const bytes = allBytes(made)
    expect(bytes.includes('@example.com')).toBe(false)
    for (const id of [...service.ids('apiKeys'), ...service.ids('users')]) expect(bytes.includes(id)).toBe(false)
    expect((await made.ask('/v1/api_keys/')).status).toBe(404)
    expect(asked(made).filter((path) => /users|api_keys/.test(path))).toEqual([])
  })

  test('loses personal data when its setting is switched off', async () => {
    const on = await mirrored({ ...SMALL, users: 3 }, PERSONAL)
    expect(await on.run('identity')).toMatchObject({ state: 'complete' })
    expect(on.store.catalog.readList('/v1/users')?.entries).toBe(3)
    const off = await bench({ ...SMALL, users: 3 }, { dir: on.dir })
    const report = await off.run('catalog')
    expect([report.state, lackingOf(report)]).toEqual(['complete', []])
    expect(off.store.catalog.readList('/v1/users')).toBeNull()
    expect(off.store.catalog.readList('/v1/api_keys')).toBeNull()
  })
})
