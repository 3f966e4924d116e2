import { expect } from 'vitest'
import { createReads } from '../../../src/store/reads.ts'
import { openReader } from '../../../src/store/database/open.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import { type PlainBench, type Saying, plainBench } from '../../support/catalog/plain-service.ts'

const SBOM = { bomFormat: 'CycloneDX', specVersion: '1.5' }
const VEX = { '@context': 'https://openvex.dev/ns/v0.2.0', statements: [] }
const TAGS: Record<string, Saying> = {
  '/v1/tags/': () => ({ body: { data: [{ id: 't' }], cursor: { after: null } } }),
  '/v1/tags/t': () => ({ body: { id: 't' } }),
  '/v1/tags/t/sbom': () => ({ body: SBOM }),
  '/v1/tags/t/vex': () => ({ body: VEX }),
}
const refusing = (why: string): Saying => {
  return () => ({ status: 403, body: { message: why } })
}

async function answerOf(made: PlainBench, path: string): Promise<[number, string]> {
  const answer = await made.ask(path)
  return [answer.status, await answer.text()]
}

const isRefused = (why: string): [number, unknown] => [403, expect.stringContaining(why)]

test('a 403 of the account costs that path alone: it is named, served as 403 with its reason, and asked again', async () => {
  const made = await plainBench({ ...TAGS, '/v1/me': refusing('machine keys have no account') })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', code: null, facts: { forbidden: 1 } })
  expect(report.message).toContain('1 of them refused to the credential (403)')
  expect(String(report.facts['lackingIds'])).toContain('/v1/me: ')
  expect(await answerOf(made, '/v1/me')).toEqual(isRefused('machine keys have no account'))
  expect(await answerOf(made, '/v1/tags/t/sbom')).toEqual([200, JSON.stringify(SBOM)])
  made.say({ '/v1/me': () => ({ body: { id: 'x' } }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await answerOf(made, '/v1/me')).toEqual([200, '{"id":"x"}'])
})

test('a 403 of one SBOM that was mirrored is its state until the service allows it again; nothing is fetched anew', async () => {
  const made = await plainBench(TAGS)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  made.say({ '/v1/tags/t/sbom': refusing('not in your plan') })
  // Its list item is unchanged: a sync does not ask. A change of the item makes it.
  made.say({ '/v1/tags/': () => ({ body: { data: [{ id: 't', n: 1 }], cursor: { after: null } } }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { forbidden: 1 } })
  expect(await answerOf(made, '/v1/tags/t/sbom')).toEqual(isRefused('not in your plan'))
  expect(await answerOf(made, '/v1/images/tags/t/sbom')).toEqual(isRefused('not in your plan'))
  expect(await answerOf(made, '/v1/tags/t/vex')).toEqual([200, JSON.stringify(VEX)])
  const asked = made.asked('/v1/tags/t/sbom').length
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { forbidden: 1 } })
  expect(made.asked('/v1/tags/t/sbom')).toHaveLength(asked + 1)
  made.say({ '/v1/tags/t/sbom': () => ({ body: SBOM }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await answerOf(made, '/v1/tags/t/sbom')).toEqual([200, JSON.stringify(SBOM)])
})

test('a 403 of a list leaves what is below it, and its items return with it', async () => {
  const made = await plainBench(TAGS)
  await made.run('catalog')
  made.say({ '/v1/tags/': refusing('no listing') })
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { removed: 0 } })
  expect(await answerOf(made, '/v1/tags/')).toEqual(isRefused('no listing'))
  expect(await answerOf(made, '/v1/tags/t/sbom')).toEqual([200, JSON.stringify(SBOM)])
  made.say(TAGS)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await answerOf(made, '/v1/tags/')).toEqual([200, expect.stringContaining('"t"')])
})

test('a 403 of the only list of the identity surface is that list’s state', async () => {
  const made = await plainBench({ '/v1/users': refusing('no users for you') }, (origin) => ({
    PATCHMIRROR_IDENTITY_API_URL: `${origin}/v1`,
    PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users',
  }))
  expect(await made.run('identity')).toMatchObject({ state: 'partial', code: null })
  expect(await answerOf(made, '/v1/users')).toEqual(isRefused('no users for you'))
})

longTest('a service that refuses all lists at once, or very many answers, changes nothing', async () => {
  const ids = Array.from({ length: 60 }, (_, at) => `t${at}`)
  const listing = (n: number): Saying => {
    return () => ({ body: { data: ids.map((id) => ({ id, n })), cursor: { after: null } } })
  }
  const answers = (said: Saying | null): Record<string, Saying> =>
    Object.fromEntries(
      ids.flatMap((id): [string, Saying][] => [
        [`/v1/tags/${id}`, said ?? (() => ({ body: { id } }))],
        [`/v1/tags/${id}/sbom`, said ?? (() => ({ body: SBOM }))],
      ]),
    )
  const made = await plainBench({ ...answers(null), '/v1/tags/': listing(1) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  made.say({ ...answers(refusing('no')), '/v1/tags/': listing(2) })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'quarantined' })
  expect(report.message).toContain('answers, which the service refuses now (403)')
  expect(await answerOf(made, '/v1/tags/t7/sbom')).toEqual([200, JSON.stringify(SBOM)])
  const lists = ['api_keys', 'subscriptions', 'patches', 'images', 'tags', 'packages']
  made.say(
    Object.fromEntries(
      lists.flatMap((name) => [
        [`/v1/${name}`, refusing('no')],
        [`/v1/${name}/`, refusing('no')],
      ]),
    ),
  )
  expect(await made.run('catalog')).toMatchObject({ state: 'failed', code: 'upstream_auth' })
  expect(await answerOf(made, '/v1/tags/')).toEqual([200, expect.stringContaining('"t7"')])
})

test('a 401 ends the run at once, and no 403 is made of it', async () => {
  const made = await plainBench({ ...TAGS, '/v1/me': () => ({ status: 401 }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'failed', code: 'upstream_auth' })
  const db = openReader(made.dir)
  if (db === null) throw new Error('no database')
  expect(createReads(db).catalog.listForbiddenPaths()).toEqual([])
  db.close()
})

test('the account or subscriptions in an unexpected shape cost themselves only', async () => {
  const made = await plainBench({
    ...TAGS,
    '/v1/subscriptions/': () => ({ body: { 7: { tag_id: 't' }, 8: { tag_id: 'u' } } }),
    '/v1/me': () => ({ body: 'signed out' }),
    '/v1/images/': () => ({ body: 12 }),
  })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', code: null })
  const named = String(report.facts['lackingIds'])
  expect(named).toContain('/v1/subscriptions')
  expect(named).toContain('/v1/me')
  expect(named).toContain('/v1/images')
  expect(await answerOf(made, '/v1/tags/t/sbom')).toEqual([200, JSON.stringify(SBOM)])
})

const OTHERS: [string, Saying][] = [
  ['is refused', refusing('no keys')],
  ['never was a list', () => ({ body: 12 })],
]

bothTest.each(telling(OTHERS, 'never was a list'))(
  'a list that %s does not make the rest look old',
  async (_name, said) => {
    let now = Date.now() - 3_600_000
    const made = await plainBench({ ...TAGS, '/v1/subscriptions/': said }, {}, () => now)
    await made.run('catalog')
    now += 1_800_000
    const report = await made.run('catalog')
    expect(report.state).toBe('partial')
    expect(report.asOf).toBeGreaterThan(now - 60_000)
  },
)

const UNREAD: [string, Saying][] = [
  ['refused', refusing('no list')],
  ['a number', () => ({ body: 12 })],
]

bothTest.each(telling(UNREAD, 'refused'))(
  'while the subscriptions are %s, nothing is said to be out of scope',
  async (_how, said) => {
    const made = await plainBench({ ...TAGS, '/v1/subscriptions/': said }, { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' })
    await made.run('catalog')
    const unknown = expect.stringContaining('without the subscriptions') as string
    expect(await answerOf(made, '/v1/tags/t/sbom')).toEqual([503, unknown])
  },
)
