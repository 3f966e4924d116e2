import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { describe, expect, test } from 'vitest'
import { loadQuick } from '../../support/limits.ts'
import { type ListedItem, type Scope, scopeOf } from '../../../src/sync/catalog/scope/scope.ts'
import { type Saying, plainBench } from '../../support/catalog/plain-service.ts'

type Item = Readonly<Record<string, unknown>>

const DIGEST = `sha256:${'ab'.repeat(32)}`
/** Ids collide between kinds, as those of a service that counts them may. */
const IMAGES: Item[] = [
  { id: 1, repository: 'cr.example.com/library/python', uuid: 'f3b1' },
  { id: 2, name: 'nginx' },
  { id: 3, name: 'team/redis' },
]
const TAGS: Item[] = [
  { id: 1, name: '3.12', image: { id: 1 }, digest: DIGEST },
  { id: 2, name: '1.27', image_id: 2 },
  { id: 7, name: 'alpine', image: { name: 'team/redis' } },
]
const PACKAGES: Item[] = [
  { id: 1, name: 'curl', ecosystem: 'debian', package_purl: 'pkg:deb/debian/curl@8.1?arch=amd64' },
  { id: 2, name: '@acme/left-pad', ecosystem: 'npm' },
  { id: 9, name: 'left', ecosystem: 'npm' },
  { id: 10, name: 'left', ecosystem: 'pypi' },
  { id: 11, name: 'org.acme:core', ecosystem: 'maven' },
]

function listed(items: readonly Item[]): ListedItem[] {
  return items.map((value) => {
    const text = JSON.stringify(value)
    return { id: String(value['id']), sha: createHash('sha256').update(text).digest(), value }
  })
}

function scoped(subscriptions: readonly Item[], held: readonly string[] = [], env = {}): Scope {
  const all = { PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9', ...env }
  const { config } = loadQuick({ env: all, cwd: tmpdir(), requireUpstream: true })
  const input = {
    subscriptions: () => listed(subscriptions),
    images: () => listed(IMAGES),
    tags: () => listed(TAGS),
    packages: () => listed(PACKAGES),
  }
  return scopeOf(config.catalog, input, (owner) => held.includes(owner))
}

/** What one subscription brings, such as `image 1` and `package 2`. */
function broughtBy(subscription: Item): string[] {
  const { images, packages, subscriptions } = scoped([{ id: 's-1', ...subscription }])
  const found = [...images.map(({ id }) => `image ${id}`), ...packages.map(({ id }) => `package ${id}`)]
  expect([...subscriptions.unresolved.values()]).toHaveLength(found.length === 0 ? 1 : 0)
  return found
}

describe('a subscription is resolved', () => {
  test.each<[string, Item, string[]]>([
    ['by a nested tag', { tag: { id: 7, name: '1' } }, ['image 3']],
    ['by the id of a tag', { service_registry_tag_id: 2 }, ['image 2']],
    ['by the id of a tag as text', { registryTagId: '2' }, ['image 2']],
    ['by the id of an image', { id: 1, organization_id: 2, image_id: 3 }, ['image 3']],
    ['by the id of a package', { id: 3, package_id: 2 }, ['package 2']],
    ['by a list of ids', { package_ids: [1, 2] }, ['package 1', 'package 2']],
    ['by a number under a name of the kind', { image: 2 }, ['image 2']],
    ['by a type beside an id', { type: 'package', resource_id: 1 }, ['package 1']],
    ['by a type within', { target: { kind: 'IMAGE', ref: 2 }, priority: 1 }, ['image 2']],
    ['by a UUID under any name', { target: 'f3b1' }, ['image 1']],
    ['by a name under any name', { what: ['nginx'] }, ['image 2']],
    ['by a name and a tag', { repository: 'team/redis', image_tag: 'alpine' }, ['image 3']],
    ['by a reference', { reference: 'other.example:5000/team/redis:alpine' }, ['image 3']],
    ['by a reference of an official image', { item: 'docker://python:3.12' }, ['image 1']],
    ['by a reference with a digest', { ref: `cr.example.com/library/python@${DIGEST}` }, ['image 1']],
    ['by a digest alone', { digest: DIGEST.toUpperCase() }, ['image 1']],
    [
      'by the purl of an image',
      { purl: 'pkg:oci/python@sha256%3A12?repository_url=cr.example.com/library/python' },
      ['image 1'],
    ],
    ['by the purl of a docker image', { u: 'pkg:docker/team/redis@alpine' }, ['image 3']],
    ['by a purl', { subject: 'pkg:npm/%40acme/left-pad@1.0.0' }, ['package 2']],
    ['by a purl of Debian', { a: { b: { c: 'pkg:deb/debian/curl@8.1' } } }, ['package 1']],
    ['by a purl of Maven', { u: 'pkg:maven/org.acme/core@1?type=jar' }, ['package 11']],
    ['by a purl of one ecosystem', { u: 'pkg:pypi/Left' }, ['package 10']],
    ['by a name and its version', { item: '@acme/left-pad@1.2' }, ['package 2']],
    ['by a name behind its ecosystem', { item: 'npm:left' }, ['package 9']],
    ['by a name beside its ecosystem', { package: { name: 'left', ecosystem: 'PyPI' } }, ['package 10']],
    ['by a name that several have', { pkg_name: 'left' }, ['package 9', 'package 10']],
  ])('%s', (_, subscription, expected) => {
    expect(broughtBy(subscription)).toEqual(expected)
  })
})

describe('an unresolved subscription', () => {
  test.each<[string, Item]>([
    ['has a target that is not listed', { image_id: 99 }],
    ['names a package of another ecosystem', { package: { name: 'curl', ecosystem: 'npm' } }],
    ['has numbers that are amounts', { id: 1, target: 'ghost', priority: 2, quota: 1 }],
    ['names only its own organization', { id: 2, organization: { id: 1, name: 'nginx' } }],
    ['has a type, and an id that only other kinds have', { type: 'tag', target_id: 3 }],
  ])('%s, and adds nothing to the scope', (_, subscription) => {
    expect(broughtBy(subscription)).toEqual([])
  })

  test('has a list of ids of which one is not listed', () => {
    const { packages, subscriptions } = scoped([{ id: 's', package_ids: [1, 99] }])
    expect(packages.map(({ id }) => id)).toEqual(['1'])
    expect(subscriptions.unresolved.get('s')).toContain('package_ids "99"')
  })

  test('keeps the previous scope, except what the settings exclude and what no list has', () => {
    const held = ['images/1', 'images/2', 'packages/1', 'packages/99']
    const ids = (scope: Scope) => [scope.images, scope.packages].map((all) => all.map(({ id }) => id))
    const env = { PATCHMIRROR_CATALOG_PATTERNS: '!image:nginx' }
    expect(ids(scoped([{ id: 's', image_id: 3 }], held))).toEqual([['3'], []])
    const unclear = [
      { id: 's', image_id: 3 },
      { id: 't', what: 'ghost' },
    ]
    expect(ids(scoped(unclear, held))).toEqual([['1', '2', '3'], ['1']])
    expect(ids(scoped(unclear, held, env))).toEqual([['1', '3'], ['1']])
  })

  test('has no effect where everything is mirrored', () => {
    const scope = scoped([{ id: 't', what: 'ghost' }], [], { PATCHMIRROR_CATALOG_SCOPE: 'all' })
    expect(scope.subscriptions.unresolved.size).toBe(0)
    expect(scope.images).toHaveLength(3)
  })
})

test('a change of the form of subscriptions makes the run partial, removes nothing, and is reported', async () => {
  const listOf =
    (...data: unknown[]): Saying =>
    () => ({ body: { data, cursor: { after: null } } })
  const image = (id: number, name: string) => ({ [`/v1/images/${id}`]: () => ({ body: { id, name } }) })
  const subscriptions = (...all: Item[]) => ({
    '/v1/subscriptions/': listOf(...all),
    ...Object.fromEntries(all.map((one) => [`/v1/subscriptions/${String(one['id'])}/`, () => ({ body: one })])),
  })
  const made = await plainBench(
    {
      '/v1/images/': listOf({ id: 1, name: 'python' }, { id: 2, name: 'nginx' }, { id: 3, name: 'redis' }),
      ...image(1, 'python'),
      ...image(2, 'nginx'),
      ...image(3, 'redis'),
      '/v1/images/python/tags': listOf(),
      '/v1/images/nginx/tags': listOf(),
      ...subscriptions({ id: 's-1', image_id: 1 }, { id: 's-2', image_id: 2 }),
    },
    { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' },
  )
  const read = async () => Promise.all([1, 2, 3].map(async (id) => (await made.ask(`/v1/images/${id}`)).status))
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await read()).toEqual([200, 200, 404])
  made.say(subscriptions({ id: 's-1', what: 'python:3' }, { id: 's-2', what: { of: 'bmdpbng=' } }))
  for (let turn = 0; turn < 2; turn++) {
    const report = await made.run('catalog')
    expect(report).toMatchObject({
      state: 'partial',
      code: null,
      facts: { subscriptionsUnderstood: '1 of 2', removed: 0 },
    })
    expect(report.message).toContain('subscriptions understood: 1 of 2')
    expect(report.facts['subscriptionsNotUnderstood']).toEqual([
      's-2: it names nothing in the lists of images, tags and packages (of "bmdpbng=")',
    ])
    expect(await read()).toEqual([200, 200, 404])
  }
  expect(made.store.snapshots.readSnapshot('catalog')).toMatchObject({ whole: false })
  expect(await (await made.ask('/-/status')).text()).not.toContain('bmdpbng')
  made.say(subscriptions({ id: 's-1', what: 'python:3' }, { id: 's-2', what: { of: 'nginx' } }))
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await read()).toEqual([200, 200, 404])
})

test('a list of subscriptions that is empty at once is not believed where it is the scope', async () => {
  const images = ['1', '2', '3'].map((id) => ({ id, name: `i${id}` }))
  let subscribed = images.map(({ id }) => ({ id: `s-${id}`, image_id: id }))
  const made = await plainBench(
    {
      '/v1/images/': () => ({ body: { data: images, cursor: { after: null } } }),
      ...Object.fromEntries(images.map((one) => [`/v1/images/${one.id}`, () => ({ body: one })])),
      ...Object.fromEntries(images.map(({ name }) => [`/v1/images/${name}/tags`, () => ({ body: [] })])),
      ...Object.fromEntries(subscribed.map((one) => [`/v1/subscriptions/${one.id}/`, () => ({ body: one })])),
      '/v1/subscriptions/': () => ({ body: { data: subscribed, cursor: { after: null } } }),
    },
    { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' },
  )
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  subscribed = subscribed.slice(1)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect((await made.ask('/v1/images/1')).status).toBe(404)
  subscribed = []
  const refused = await made.run('catalog')
  expect(refused).toMatchObject({ state: 'quarantined' })
  expect(refused.message).toContain('/v1/subscriptions: it would remove all 2 items')
  expect((await made.ask('/v1/images/2')).status).toBe(200)
})
