import { describe, expect, test } from 'vitest'
import { errorOfAnswer, errorOfPage, unfinishedState } from '../../../../src/base/json/forms/error-body.ts'

describe('an answer that is an error', () => {
  test.each<[string, unknown, string]>([
    ['a text', { error: 'backend down' }, 'backend down'],
    ['errors without items', { data: null, errors: [{ message: 'no' }] }, 'no'],
    ['errors with an id', { errors: [{ id: 7, title: 'no' }] }, 'no'],
    ['errors of texts', { data: [], errors: ['no'] }, 'no'],
    ['a flag beside a message', { error: true, message: 'no' }, 'no'],
    ['a state beside a message', { data: [], status: 'error', message: 'no' }, 'no'],
    ['a refused success', { success: false, message: 'no', data: [] }, 'no'],
    ['a problem', { type: 'about:blank', title: 'no', status: 503 }, 'no'],
    ['an inner error', { meta: { request_id: 'r' }, result: { error: { detail: 'no' } } }, 'no'],
    ['an error with a link', { error: { doc_url: 'https://x.example/1' } }, 'https://x.example/1'],
    ['numbers of an empty page', { data: [], total: 0, limit: 10, error: 'late' }, 'late'],
  ])('is read where it has %s', (_, value, words) => {
    expect(errorOfAnswer(value)).toContain(words)
    expect(errorOfPage(value)).toContain(words)
  })

  test.each<[string, unknown]>([
    ['an empty list', { data: [], cursor: null }],
    ['an empty list with a message', { data: [], status: 'ok', message: 'none yet' }],
    ['no errors', { data: [], errors: [], error: null }],
    ['a code of success', { data: [], error: { code: 0, message: 'success' } }],
    ['items beside errors', { data: [{ id: 1 }], errors: [{ message: 'no' }] }],
    ['items in a member named result', { result: [{ id: 1 }], error: 'no' }],
    ['an item with an error of its own', { id: 1, data: [1], status: 'failed', error: 'no' }],
    ['a list', [{ error: 'no' }]],
    ['a text', 'error'],
  ])('is not seen in %s', (_, value) => {
    expect(errorOfAnswer(value)).toBeNull()
    expect(errorOfPage(value)).toBeNull()
  })

  test('is not seen in an item whose fields name one, as it has others', () => {
    expect(errorOfAnswer({ id: 1, status: 'failed', message: 'the build failed' })).toBeNull()
  })
})

test('an answer without content names that it is not ready yet', () => {
  expect(unfinishedState({ status: 'processing' })).toBe('processing')
  expect(unfinishedState({ data: { state: 'queued', progress: 40 } })).toBe('queued')
  expect(unfinishedState({ status: 'processing', packages: [1] })).toBeNull()
  expect(unfinishedState({ status: 'active' })).toBeNull()
})
