import { expect, test } from 'vitest'
import { fillPath } from '../../../../src/base/domain/path-templates.ts'
import { type Said, plainBench } from '../../../support/catalog/plain-service.ts'
import { lackingOf } from '../fixtures.ts'

const VERSIONS = '/packages/ecosystems/npm/packages/ms/versions'
const TAG = { id: 'a', name: '3.12', image: { id: 'i', name: 'python' } }
const json = (body: string): Said => ({ headers: { 'content-type': 'application/json' }, body })

/** Answers of status 200 that are about nothing that was asked for. */
const STRANGERS: readonly Said[] = [
  { body: {} },
  { body: [] },
  json('null'),
  json('"ok"'),
  json('17'),
  { body: { data: null } },
  { body: { message: 'maintenance until 5 o’clock' } },
  { body: { status: 'maintenance' } },
]
const NOTICES: readonly Said[] = [
  { body: { login_url: 'https://sso.example/login' } },
  { body: { status: 'UP', version: '1.2.3' } },
]
/** Those that have content, and that of something else, by path. */
const OTHERS: ReadonlyMap<string, readonly Said[]> = new Map([
  ['/v1/me', NOTICES],
  [
    '/v1/tags/a',
    [
      ...NOTICES,
      { body: { ...TAG, id: 'b' } },
      { body: { data: { ...TAG, id: 'b' } } },
      { body: [{ ...TAG, id: 'b' }] },
    ],
  ],
])

test('an answer that does not name the item that was asked for, or says nothing, leaves what is stored', async () => {
  let n = 0
  const bodies: Record<string, unknown> = {
    '/v1/me': { id: 'x', name: 'me' },
    '/v1/tags/a': TAG,
    [VERSIONS]: { versions: [{ version: '2.1.3' }] },
  }
  const said = new Map<string, Said>()
  const made = await plainBench({
    '/v1/tags/': () => ({ body: { data: [{ id: 'a', n }], cursor: { after: null } } }),
    '/v1/packages/': () => ({
      body: { data: [{ id: 'p', ecosystem: 'npm', name: 'ms', n }], cursor: { after: null } },
    }),
    '/v1/packages/p': () => ({ body: { data: { package_id: 'P', name: 'ms' } } }),
    ...Object.fromEntries(Object.entries(bodies).map(([path, body]) => [path, () => said.get(path) ?? { body }])),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  for (const path of Object.keys(bodies))
    for (const stranger of [...STRANGERS, ...(OTHERS.get(path) ?? [])]) {
      n++
      said.clear()
      said.set(path, stranger)
      const { state, facts } = await made.run('catalog')
      const text = await (await made.ask(path)).text()
      expect([path, stranger, state, facts['lacking'], text]).toEqual([
        path,
        stranger,
        'partial',
        1,
        JSON.stringify(bodies[path]),
      ])
    }
})

test('a list of versions that is empty is the answer of a package that had none', async () => {
  const made = await plainBench({
    '/v1/packages/': () => ({ body: { data: [{ id: 'p', ecosystem: 'npm', name: 'ms' }], cursor: { after: null } } }),
    '/v1/packages/p': () => ({ body: { id: 'p' } }),
    [VERSIONS]: () => ({ body: { versions: [] } }),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect((await made.ask(VERSIONS)).status).toBe(200)
})

test('an answer about the account whose members all have other names is taken by a sync that trusts nothing known', async () => {
  let account: object = { email: 'a@example' }
  const made = await plainBench({ '/v1/me': () => ({ body: account }) })
  await made.run('catalog')
  account = { user_email: 'a@example', plan: 'b' }
  expect(JSON.stringify((await made.run('catalog')).facts['lackingIds'])).toContain('a sync with --full replaces')
  expect((await made.run('catalog', { full: true })).facts['lacking']).toBeUndefined()
  expect(await (await made.ask('/v1/me')).json()).toEqual(account)
})

test('a notice in place of an account with an id is never taken, and the account is there again after it', async () => {
  let account: object = { id: 'u', email: 'a@example' }
  const made = await plainBench({ '/v1/me': () => ({ body: account }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const served = async (): Promise<unknown> => (await made.ask('/v1/me')).json()
  account = { notice: { headline: 'Maintenance', until: '2026-12-01' } }
  for (const full of [false, true])
    expect(await made.run('catalog', { full })).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  expect(await served()).toEqual({ id: 'u', email: 'a@example' })
  account = { userId: 'u', mail: 'a@example' }
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  expect(await made.run('catalog', { full: true })).toMatchObject({ state: 'complete' })
  expect(await served()).toEqual(account)
})

test('a service whose answers about items have no ids is mirrored, until one has that of another item', async () => {
  let detail: unknown = { name: '3.12', image: { id: 'i', name: 'python' } }
  let n = 0
  const made = await plainBench({
    '/v1/tags/': () => ({ body: { data: [{ id: 'a', n }], cursor: { after: null } } }),
    '/v1/tags/a': () => ({ body: { data: detail } }),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const stored = await (await made.ask('/v1/tags/a')).text()
  expect(JSON.parse(stored)).toEqual({ data: detail })
  detail = { id: 'b', name: '3.13' }
  n++
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  expect(lackingOf(report)[0]).toMatch(
    /it does not name a; request it from the service without a proxy, and compare; what is stored stays$/,
  )
  expect(await (await made.ask('/v1/tags/a')).text()).toBe(stored)
  for (detail of [{ login_url: 'https://sso.example/login' }, { health: 'UP', since: { day: 3 } }]) {
    n++
    const { facts } = await made.run('catalog')
    expect([detail, facts['lacking']]).toEqual([detail, 1])
    expect(await (await made.ask('/v1/tags/a')).text()).toBe(stored)
  }
  for (detail of [{ Name: '3.13' }, { tag: { name: '3.14', bytes: 1 } }, { bytes: 2 }]) {
    n++
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await (await made.ask('/v1/tags/a')).json()).toEqual({ data: detail })
  }
})

test('an item is recognised by its id in another case, as a number, as a text and percent-encoded', async () => {
  const ids: [listed: string | number, told: string | number][] = [
    ['Ab', 'aB'],
    [7, '7'],
    ['8', 8],
    ['team/app', 'team%2Fapp'],
    ['team%3Aapp', 'team:app'],
    ['100%', '100%'],
  ]
  const made = await plainBench({
    '/v1/tags/': () => ({ body: { data: ids.map(([id]) => ({ id })), cursor: { after: null } } }),
    ...Object.fromEntries(
      ids.map(([id, told]) => [fillPath('/v1/tags/{id}', { id: `${id}` }), () => ({ body: { id: told } })]),
    ),
  })
  expect(lackingOf(await made.run('catalog'))).toEqual([])
})
