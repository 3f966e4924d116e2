import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { DAY_MS } from '../../../src/base/time.ts'
import { listChanges, listTags } from '../../../src/features/findings/answers.ts'
import { beginFindings, logFindings, writeFindings } from '../relay/findings-log.ts'
import { NOW, scratch } from '../../store/fixtures.ts'
import { emptyDisk, fillDisk, mountDisk, unmountDisk } from '../../support/small-disk.ts'
import { readFindings } from './fixtures.ts'

const ASKED = { now: NOW, idsNamed: () => [] }

test('changes since a time are complete unless some as new were deleted, also when all are older than is kept', () => {
  const dir = scratch()
  const log = beginFindings(dir)
  const day = (number: number): number => NOW + number * DAY_MS
  const complete = (query: Readonly<Record<string, string>>, now: number): unknown =>
    readFindings(dir, (reads) => listChanges(reads, { ...ASKED, query: new URLSearchParams(query), now }).complete)
  const since = (at: number, now: number): unknown => complete({ since: new Date(at).toISOString() }, now)
  const prune = (now: number): void => writeFindings(dir, (store) => store.pruneLog(30, now))
  expect([since(day(0), day(0)), since(day(0) - 1, day(0))]).toEqual([true, false]) // the log began then
  for (const at of [1, 2, 3]) logFindings(dir, `s${at}`, ['a', 'b'], { at: day(at) })
  prune(day(20))
  expect([complete({}, day(20)), since(day(0), day(20))]).toEqual([true, true])

  prune(day(100))
  const kept = readFindings(dir, (reads) => [reads.firstLog(), reads.lastLog()])
  expect(kept).toEqual([6, 6])
  expect([3, 3.5, 99].map((at) => since(day(at), day(100)))).toEqual([false, true, true])
  expect(complete({}, day(100))).toBe(false)
  expect([4, 5, 6].map((at) => complete({ after: `${log}-${at}` }, day(100)))).toEqual([false, true, true])

  logFindings(dir, 's4', ['c'], { at: day(101) })
  expect([2, 3.5, 101].map((at) => since(day(at), day(101)))).toEqual([false, true, true])
  prune(day(200))
  expect([3.5, 101, 102].map((at) => since(day(at), day(200)))).toEqual([false, false, true])
})

test('changes are not deleted because a later one was dated by a clock that was behind', () => {
  const dir = scratch()
  beginFindings(dir)
  for (const at of [NOW, 1, NOW + DAY_MS]) logFindings(dir, `s${at}`, ['a'], { at })
  writeFindings(dir, (store) => store.pruneLog(30, NOW + 2 * DAY_MS))
  expect(readFindings(dir, (reads) => reads.firstLog())).toBe(1)
})

test('no answer is complete before all tags were judged for the first time', () => {
  const dir = scratch()
  writeFindings(dir, (store) => store.putRecordState({ osv: 's0', osvAsOf: NOW, form: '1', generation: 'g1' }))
  const ask = (query: string) =>
    readFindings(dir, (reads) => listChanges(reads, { ...ASKED, query: new URLSearchParams(query) }))
  for (const query of ['', 'since=0m', 'since=7d'])
    expect(ask(query)).toMatchObject({ complete: false, knownSince: null })
})

test('changes are listed of one tag, which an id, a name or a digest names, also when it is gone', () => {
  const dir = scratch()
  beginFindings(dir)
  for (const snapshot of ['s1', 's2']) logFindings(dir, snapshot, ['a', 'b'])
  const tags: Readonly<Record<string, string[]>> = { 'sha256:1': ['tag-b'], 'sha256:2': ['tag-a', 'tag-b'] }
  const ask = (tag: string, more = {}) =>
    readFindings(dir, (reads) => {
      const query = new URLSearchParams({ tag, ...more })
      const idsNamed = (text: string) => tags[text] ?? []
      return listChanges(reads, { query, now: NOW, idsNamed })
    })
  const first = ask('tag-b', { limit: '1' })
  expect(first.changes).toMatchObject([{ tag: { id: 'tag-b' }, snapshot: 's1' }])
  const second = ask('tag-b', { after: first.next })
  expect(second.changes).toMatchObject([{ tag: { id: 'tag-b' }, snapshot: 's2' }])
  expect([first.next?.endsWith('-2'), second.next, second.position.endsWith('-4')]).toEqual([true, null, true])
  expect(ask('sha256:1').changes).toMatchObject([{ snapshot: 's1' }, { snapshot: 's2' }])
  const { name = '' } = readFindings(dir, (reads) => reads.listLogOf('tag-b', 1))[0] ?? {}
  expect(ask(name)).toMatchObject({
    tag: { id: 'tag-b', name, removed: true, removedAt: null },
    changes: [{ snapshot: 's1' }, { snapshot: 's2' }],
  })
  expect(() =>
    readFindings(dir, (reads) => listTags(reads, { ...ASKED, query: new URLSearchParams({ tag: name }) })),
  ).toThrow('was removed')
  expect(() => ask('sha256:2')).toThrow('tag-a or tag-b')
  expect(() => ask('c')).toThrow('no tag of this id, name, digest or reference')
  for (const empty of ['tag', 'since']) expect(() => ask('tag-b', { [empty]: '' })).toThrow(`${empty}= is empty`)
})

test('the findings of all tags, and of one that nothing names, are refused while the list of tags is cut', () => {
  const dir = scratch()
  beginFindings(dir)
  logFindings(dir, 's1', ['a'])
  const ask = (query: Readonly<Record<string, string>>, grade: 'cut' | 'unproved') => {
    const incomplete = { grade, reason: 'upstream counts 9 items' }
    const question = { ...ASKED, query: new URLSearchParams(query), incomplete }
    return readFindings(dir, (reads) => listTags(reads, question).tags)
  }
  const why = 'not known to be complete (upstream counts 9 items)'
  expect(() => ask({}, 'cut')).toThrow(why)
  expect(() => ask({ tag: 'c' }, 'cut')).toThrow(why)
  expect(ask({}, 'unproved')).toEqual([])
  expect(() => ask({ tag: 'c' }, 'unproved')).toThrow('no tag of this id, name, digest or reference')
})

test('what is stored is read on a full disk, and judged again when there is room', (context) => {
  const dir = mountDisk('1m')
  if (dir === null) return context.skip('no file system can be mounted')
  onTestFinished(() => unmountDisk(dir))
  beginFindings(dir)
  const names = (): unknown => readFindings(dir, (reads) => reads.listLog(0, 10).map(({ name }) => name))
  logFindings(dir, 's1', ['a'])
  fillDisk(dir)
  expect(names()).toEqual(['a'])
  expect(() => logFindings(dir, 's2', ['b'])).toThrow(/full|disk/)
  expect(names()).toEqual(['a'])
  emptyDisk(dir)
  logFindings(dir, 's2', ['b'])
  expect(names()).toEqual(['a', 'b'])
  expect(readdirSync(join(dir, 'derived'))).toEqual(['findings.db'])
})
