import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { createDigestLines } from '../../../src/store/catalog/digest-lines.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { scratch } from '../fixtures.ts'

const TEXTS = ['a', 'A', 'b"\\', "c'", '\u00e9', '\u{1f419}', '\uffff', '\u2028', '\u007f']
const hexOf = (at: number): string => `${at}f`.padStart(64, '0')

interface Answer {
  path: string
  resource: string
  status: number
  sha: string
  links: string
}

/** Answers and lists of both sources; a path has both, items have every kind of character, and one list is empty. */
const ANSWERS: Answer[] = TEXTS.flatMap((text, at) =>
  ['tags', 'users'].map((resource) => {
    const links = JSON.stringify([{ at: [text], digest: hexOf(at) }])
    const status = [200, 404, 204][at % 3] ?? 200
    return { path: `/${resource}/${text}`, resource, status, sha: hexOf(at), links }
  }),
)
const LISTS = [...ANSWERS.slice(2, 8), { path: '/empty', resource: 'tags' }].map(({ path, resource }, at) => ({
  path,
  resource,
  id: at + 1,
  frame: `{"at":"${path}"}`,
}))
const ITEMS = LISTS.slice(0, -1).flatMap(({ id, path }) =>
  TEXTS.map((text, at) => ({
    list: id,
    path,
    id: text,
    ordinal: 90 - at,
    sha: hexOf(at + id).slice(-32),
  })),
)

const byBytes = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other))

/** The same lines, made without SQLite. */
function expected(isOwn: (resource: string) => boolean): { served: string; content: string } {
  const lists = LISTS.filter(({ resource }) => isOwn(resource)).sort((a, b) => byBytes(a.path, b.path))
  const answers = ANSWERS.filter(({ resource }) => isOwn(resource)).sort((a, b) => byBytes(a.path, b.path))
  const served = [
    ...answers.map(({ path, status, sha, links }) => [
      path,
      status === 204 ? 'none' : 'answer',
      `${sha.toUpperCase()} ${links}`,
    ]),
    ...lists.map(({ path, frame }) => [path, 'list', frame]),
  ].sort(([a = '', kind = ''], [b = '', other = '']) => byBytes(a, b) || byBytes(kind, other))
  const itemsOf = (id: number) => ITEMS.filter(({ list }) => list === id)
  const inOrder = lists.flatMap(({ id, path }) =>
    itemsOf(id)
      .sort((a, b) => a.ordinal - b.ordinal)
      .map(({ sha }) => [path, sha] as const),
  )
  const content = [
    ...lists.map(({ path }) => ['list', path]),
    ...lists.flatMap(({ id, path }) =>
      itemsOf(id)
        .sort((a, b) => byBytes(a.id, b.id))
        .map((item) => ['item', path, item.id, item.sha]),
    ),
    ...answers.filter(({ status }) => status === 200).map(({ path, sha, links }) => ['answer', path, sha, links]),
  ]
  const text = served.map((line) => `${line.join(' ')}\n`).join('')
  const entries = inOrder.map(([path, sha]) => Buffer.from(path).toString('hex') + sha).join('')
  return {
    served: Buffer.from(text).toString('hex') + entries,
    content: content.map((line) => `${JSON.stringify(line)}\n`).join(''),
  }
}

test.each([
  ['all at once', { answers: 1000, lists: 1000, items: 1000 }],
  ['one row at a time', { answers: 1, lists: 1, items: 1 }],
  ['some rows at a time', { answers: 4, lists: 3, items: 2 }],
])('the lines of digests are those of all rows of the source, read %s', (_how, blocks) => {
  const dir = scratch()
  openWrites(dir).close()
  const db = new Database(databasePath(dir))
  try {
    const answer =
      db.prepare(`INSERT INTO catalog_answer (path, resource, owner, owner_sha, status, size, sha256, changed, links, mentions)
      VALUES (@path, @resource, '', x'', @status, 0, unhex(@sha), 0, @links, '[]')`)
    const list = db.prepare(
      'INSERT INTO catalog_list (id, path, resource, frame, entries, changed) VALUES (@id, @path, @resource, @frame, 0, 0)',
    )
    const item = db.prepare(
      "INSERT INTO catalog_entry (list, ordinal, id, sha, body) VALUES (@list, @ordinal, @id, unhex(@sha), x'')",
    )
    for (const row of ANSWERS.toReversed()) answer.run(row)
    for (const row of LISTS) list.run(row)
    for (const { path: _, ...row } of ITEMS) item.run(row)
    const lines = createDigestLines(db, blocks)
    for (const source of ['catalog', 'identity'] as const) {
      const wanted = expected((resource) => (resource === 'users') === (source === 'identity'))
      expect(Buffer.concat([...lines.servedLines(source)]).toString('hex')).toBe(wanted.served)
      expect(Buffer.concat([...lines.contentLines(source)]).toString()).toBe(wanted.content)
    }
  } finally {
    db.close()
  }
})
