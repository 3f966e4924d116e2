import { describe, expect, test } from 'vitest'
import { createTypeFilter, readEvent } from '../../src/webhooks/event.ts'
import { EVENT } from './signing.ts'

const read = (event: unknown) => readEvent(Buffer.from(JSON.stringify(event)))
const withData = (data: unknown) => read({ ...EVENT, data })

test('an event names its repository, tag, digest, architecture and subject', () => {
  expect(read(EVENT)).toEqual({
    type: EVENT.type,
    target: {
      repository: 'library/python',
      tag: '3.12-slim',
      digest: EVENT.data.image_digest,
      arch: 'amd64',
      subject: EVENT.subject,
    },
  })
})

test.each([
  [Buffer.from([0xff, 0x7b, 0x7d]), 'the body is not UTF-8'],
  ['', 'the body is not JSON'],
  ['{"type":', 'the body is not JSON'],
  ['['.repeat(200_000), 'the body is not JSON'],
  ['null', 'the body is not a JSON object'],
  ['[]', 'the body is not a JSON object'],
  ['"text"', 'the body is not a JSON object'],
  ['{}', 'the event has no type'],
  ['{"type":7}', 'the type of the event is not one word of visible ASCII'],
  ['{"type":""}', 'the type of the event is not one word of visible ASCII'],
  ['{"type":"a\\nb"}', 'the type of the event is not one word of visible ASCII'],
  [`{"type":"${'x'.repeat(257)}"}`, 'the type of the event is not one word of visible ASCII'],
])('what is no event is told without quoting it', (body, malformed) => {
  expect(readEvent(Buffer.from(body))).toEqual({ malformed })
})

describe('without a target that can be used, an event is still an event', () => {
  test.each([
    ['no data', undefined],
    ['data of another kind', 'text'],
    ['data in a list', [EVENT.data]],
    ['other field names', { repository: 'library/python', tag: '3.12' }],
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
    ['an odd architecture', { ...EVENT.data, arch: 'amd64; rm -rf /' }],
  ])('%s', (_, data) => {
    expect(withData(data)).toEqual({ type: EVENT.type, target: null })
  })

  test.each(['a b', 'x\u0000', 'https://evil.example.com/a?b', 'cr.example.com/../x:1', 5])(
    'the subject %j',
    (subject) => {
      expect(read({ ...EVENT, subject })).toMatchObject({ target: null })
    },
  )
})

test('parts that are not named are null; the repository alone is a target', () => {
  expect(withData({ image_repo: 'python', image_tag: null })).toMatchObject({
    target: { repository: 'python', tag: null, digest: null, arch: null },
  })
  expect(withData({ image_repo: 'a__b/c-d.e/f--g', arch: 'arm/v7' })).toMatchObject({
    target: { repository: 'a__b/c-d.e/f--g', arch: 'arm/v7' },
  })
})

test('names that belong to every object in JavaScript are names like others', () => {
  const text = '{"type":"a.b","__proto__":{"data":{"image_repo":"x"}},"constructor":1}'
  expect(readEvent(Buffer.from(text))).toEqual({ type: 'a.b', target: null })
})

test('types are wanted by pattern: the contract’s, the vendor’s and later versions', () => {
  const wanted = createTypeFilter(
    ['io.service.cr.image.created.v*', 'io.{vendor}.cr.image.created.v*'],
    'acme',
  )
  for (const type of ['io.service.cr.image.created.v1', 'io.acme.cr.image.created.v2'])
    expect(wanted(type)).toBe(true)
  for (const type of ['io.other.cr.image.created.v1', 'io.service.cr.image.deleted.v1', ''])
    expect(wanted(type)).toBe(false)
  expect(createTypeFilter(['a.b'], 'x')('a.b.c')).toBe(false)
})
