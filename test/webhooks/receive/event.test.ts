import { describe, expect, test } from 'vitest'
import { createTypeFilter, parseBody } from '../../../src/webhooks/receive/event.ts'
import { EVENT } from '../signing.ts'

const WANTED = createTypeFilter(['io.{vendor}.cr.image.created.v*'], 'service')
const readText = (body: string | Buffer) => parseBody(Buffer.from(body), WANTED)
const read = (event: unknown) => readText(JSON.stringify(event))
const withData = (data: unknown) => read({ ...EVENT, data })

const DIGEST = EVENT.data.image_digest
const NAMED = {
  repository: 'library/python',
  tag: '3.12-slim',
  digest: DIGEST,
  arch: 'amd64',
  subject: EVENT.subject,
}
const NOTHING = { type: null, target: null, wanted: true }

test('an event names its repository, tag, digest, architecture and subject', () => {
  expect(read(EVENT)).toEqual({ type: EVENT.type, target: NAMED, wanted: true })
})

test.each([
  Buffer.from([0xff, 0x7b, 0x7d]),
  '',
  '{"type":',
  'payload=%7B%22type%22%3A1%7D',
  '['.repeat(200_000),
  'null',
  '[]',
  '[[1],"a",null]',
  '"text"',
  '{}',
  '{"type":7}',
  '{"type":""}',
  '{"type":"a\\nb"}',
  `{"type":"${'x'.repeat(257)}"}`,
])('a body without a type that can be used is a reason to look, without a target: %j', (body) => {
  expect(readText(body)).toEqual(NOTHING)
})

describe('an event without a usable target is accepted', () => {
  test.each([
    ['a repository of another kind', { ...EVENT.data, image_repo: { name: 'x' } }],
    ['a path that leaves', { ...EVENT.data, image_repo: '../../v1/me' }],
    ['an absolute path', { ...EVENT.data, image_repo: '/etc/passwd' }],
    ['a query', { ...EVENT.data, image_repo: 'library/python?x=1' }],
    ['an escape', { ...EVENT.data, image_repo: 'library%2fpython' }],
    ['a URL', { ...EVENT.data, image_repo: 'https://evil.example.com/' }],
    ['a line break', { ...EVENT.data, image_tag: 'a\nFAKE LOG LINE' }],
    ['a terminal sequence', { ...EVENT.data, image_tag: '\u001b[2J' }],
    ['a very long tag', { ...EVENT.data, image_tag: 'a'.repeat(129) }],
    ['a digest of another form', { ...EVENT.data, image_digest: 'sha256:xyz' }],
    ['an upper case digest', { ...EVENT.data, image_digest: `sha256:${'A'.repeat(64)}` }],
    ['a malformed architecture', { ...EVENT.data, arch: 'amd64; rm -rf /' }],
  ])('%s', (_, data) => {
    expect(withData(data)).toEqual({ type: EVENT.type, target: null, wanted: true })
  })

  test.each(['a b', 'x\u0000', 'https://evil.example.com/a?b', 'cr.example.com/../x:1', 5])(
    'the subject %j',
    (subject) => {
      expect(read({ ...EVENT, subject })).toMatchObject({ target: null })
    },
  )

  test.each([
    { repository: '../../v1/me', tag: 'x\ny' },
    { image: 'https://evil.example.com/a:b' },
    { ref: 'main', target: 'production', artifact: 'sbom' },
    { tag: '3.12', digest: DIGEST },
  ])('when its fields are %j', (data) => {
    expect(read({ event: 'x', ...data })).toEqual({ type: 'x', target: null, wanted: true })
  })
})

test('the parts of a target that are not named are null, and the repository alone is a target', () => {
  expect(withData({ image_repo: 'python', image_tag: null })).toMatchObject({
    target: { repository: 'python', tag: null, digest: null, arch: null },
  })
  expect(withData({ image_repo: 'a__b/c-d.e/f--g', arch: 'arm/v7' })).toMatchObject({
    target: { repository: 'a__b/c-d.e/f--g', arch: 'arm/v7' },
  })
})

const REF = `cr.example.com:5000/library/python:3.12-slim@${DIGEST}`
const PYTHON = { repository: 'library/python', tag: '3.12-slim' }

describe('the image of an event is found', () => {
  test.each<[string, unknown, object]>([
    ['by the subject alone', { type: EVENT.type, subject: EVENT.subject }, PYTHON],
    ['in a list', { ...EVENT, data: [EVENT.data] }, { ...PYTHON, digest: DIGEST }],
    ['in one field', { event_type: 'tag.created', payload: { image: REF } }, { ...PYTHON, digest: DIGEST }],
    ['in one field with a scheme', { image_ref: 'oci://library/python:3.12-slim' }, PYTHON],
    ['in a field called tag', { data: { tag: 'cr.example.com/library/python:3.12-slim' } }, PYTHON],
    [
      'in camelCase',
      { eventType: 'x', data: { imageRepo: 'library/python', imageTag: '3.12-slim', imageDigest: DIGEST } },
      { ...PYTHON, digest: DIGEST },
    ],
    [
      'in three objects',
      { image: { name: 'library/python' }, tag: { name: '3.12-slim' }, manifest: { digest: DIGEST } },
      { ...PYTHON, digest: DIGEST },
    ],
    ['with its registry apart', { registry: 'cr.example.com', repository: 'library/python', tag: '3.12-slim' }, PYTHON],
    [
      'with its namespace apart',
      {
        repository: { name: 'python', repo_full_name: 'library/python' },
        resources: [{ tag: '3.12-slim', digest: DIGEST.slice(7) }],
      },
      { ...PYTHON, digest: DIGEST },
    ],
    [
      'beside ids',
      { repository: 'library/python', tag: '3.12-slim', tag_id: '0f8fad5b-d9cb-469f-a165-70867728950e' },
      PYTHON,
    ],
  ])('%s', (_, event, target) => {
    const { target: found } = read(event)
    expect(found).toMatchObject(target)
    expect(found).not.toHaveProperty('others')
  })
})

describe('several events in one body each name a target', () => {
  const other = {
    ...EVENT,
    id: 'evt_2',
    subject: 'cr.example.com/library/node:22',
    data: { image_repo: 'library/node', image_tag: '22' },
  }
  const both = { ...NAMED, others: [{ repository: 'library/node', tag: '22' }] }

  test.each<[string, string]>([
    ['in a list', JSON.stringify([EVENT, other])],
    ['in a wrapper', JSON.stringify({ batch: 7, events: [EVENT, other] })],
    ['in a wrapper with a type', JSON.stringify({ type: EVENT.type, items: [EVENT, other] })],
    ['one a line', `${JSON.stringify(EVENT)}\r\n${JSON.stringify(other)}\n`],
    ['and one of them twice', JSON.stringify([EVENT, other, other])],
  ])('%s', (_, body) => {
    expect(readText(body)).toMatchObject({ type: EVENT.type, target: both, wanted: true })
  })

  test('also without a type, and as a list of names', () => {
    const named = { repository: 'library/python', tags: ['3.12', '3.13'] }
    expect(read(named).target).toMatchObject({
      tag: '3.12',
      others: [{ repository: 'library/python', tag: '3.13' }],
    })
    const images = { images: ['library/python:3.12', 'cr.example.com/library/node:22'] }
    expect(read(images).target).toMatchObject({
      repository: 'library/python',
      others: [{ repository: 'library/node', tag: '22' }],
    })
  })

  test('except those of an ignored type', () => {
    const gone = { ...EVENT, type: 'io.service.cr.image.deleted.v1' }
    expect(read([gone, other])).toMatchObject({ target: { tag: '22' }, wanted: true })
    expect(read([gone, gone])).toMatchObject({ wanted: false })
  })

  test('and layers are no targets of their own', () => {
    const layers = [{ digest: `sha256:${'1'.repeat(64)}` }, { digest: `sha256:${'2'.repeat(64)}` }]
    expect(read({ ...EVENT, layers }).target).toEqual(NAMED)
  })

  test('up to a limit', () => {
    const tags = Array.from({ length: 5000 }, (_, at) => `v${at}`)
    expect(read({ repository: 'a', tags }).target?.others).toHaveLength(99)
    const events = Array.from({ length: 5000 }, (_, at) => ({ ...EVENT, id: String(at) }))
    expect(read(events).target).toEqual(NAMED)
    let deep: unknown = { repository: 'a', tag: 'b' }
    for (let depth = 0; depth < 2000; depth++) deep = depth % 2 === 0 ? { deep } : [deep]
    expect(read(deep).target).toBeNull()
  })
})

test('an image with the name of a member of every JavaScript object is read as any other', () => {
  const text = '{"type":"a.b","__proto__":{"x":1},"constructor":1,"toString":{"hasOwnProperty":2}}'
  expect(readText(text)).toEqual({ type: 'a.b', target: null, wanted: true })
})

test('the types of events are accepted by pattern: the contract’s, the vendor’s and later versions', () => {
  const wanted = createTypeFilter(['io.service.cr.image.created.v*', 'io.{vendor}.cr.image.created.v*'], 'acme')
  for (const type of ['io.service.cr.image.created.v1', 'io.acme.cr.image.created.v2']) expect(wanted(type)).toBe(true)
  for (const type of ['io.other.cr.image.created.v1', 'io.service.cr.image.deleted.v1', ''])
    expect(wanted(type)).toBe(false)
  expect(createTypeFilter(['a.b'], 'x')('a.b.c')).toBe(false)
})

test('a type that no pattern matches is ignored if the patterns name its kind, and otherwise causes a refresh', () => {
  expect(read({ ...EVENT, type: 'image.deleted' }).wanted).toBe(false)
  expect(read({ type: 'io.service.cr.image.deleted.v1' }).wanted).toBe(false)
  expect(read({ type: 'image.created', payload: {} }).wanted).toBe(true)
  expect(read({ event_type: 'io.service.cr.image.deleted.v1' }).wanted).toBe(true)
})

test('more events than are read are a reason to look, whatever the types of the first are', () => {
  const other = { ...EVENT, type: 'image.deleted' }
  const events = [...Array.from({ length: 100 }, () => other), EVENT]
  const lines = events.map((event) => JSON.stringify(event)).join('\n')
  for (const body of [JSON.stringify(events), JSON.stringify({ events }), lines])
    expect(readText(body)).toEqual(NOTHING)
  expect(read(events.slice(0, 100)).wanted).toBe(false)
})
