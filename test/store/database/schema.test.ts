import Database from 'better-sqlite3'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/base/digest.ts'
import {
  type Db,
  databasePath,
  inboxPath,
  openInbox,
  openInboxReader,
  openReader,
  openWriter,
} from '../../../src/store/database/open.ts'
import { createRelayOutbox } from '../../../src/store/webhooks/outbox.ts'
import { MIRROR_SCHEMA } from '../../../src/store/database/schema/mirror.ts'
import { newestOf } from '../../../src/store/database/schema/schema.ts'
import { WEBHOOKS_SCHEMA } from '../../../src/store/database/schema/webhooks.ts'
import { addStep, refusal, scratch, setSchema } from '../fixtures.ts'

/** Returns the schema of a database: its version, and the definition of everything in it. */
function schemaOf(db: Db): unknown {
  const objects = db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name')
  return [db.pragma('user_version', { simple: true }), objects.all()]
}

/** Returns 16 hex digits that identify a step, whatever its comments and spaces. */
function digestOf(step: string): string {
  const text = step.replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim()
  return sha256Hex(Buffer.from(text)).slice(0, 16)
}

/** Digest of each step, in order. A step is never edited: folders that it made exist. */
const MIRROR_STEPS: readonly string[] = ['d136c4ac0540fa83', 'c5018f574b791633', '2d97853f675ff5c0']
const WEBHOOKS_STEPS: readonly string[] = ['a8b28459aedbe899', '1efb242c98006724']

describe.each([
  ['mirror.db', MIRROR_SCHEMA, MIRROR_STEPS, databasePath, openWriter, openReader],
  ['webhooks.db', WEBHOOKS_SCHEMA, WEBHOOKS_STEPS, inboxPath, openInbox, openInboxReader],
] as const)('the schema of %s', (name, schema, digests, pathIn, open, openToRead) => {
  test('is changed by a further step, and no earlier step is edited', () => {
    expect(schema.steps.map(digestOf)).toEqual(digests)
  })

  test('is the same in a new folder and in one that was upgraded', () => {
    const dir = scratch()
    open(dir, null).close()
    addStep(schema)
    expect(openToRead(dir)).toBeNull()
    const upgraded = open(dir, () => undefined)
    const fresh = open(scratch(), null)
    expect(schemaOf(upgraded)).toEqual(schemaOf(fresh))
    expect(schemaOf(upgraded)).toEqual([newestOf(schema), expect.anything()])
    upgraded.close()
    fresh.close()
    expect(existsSync(`${dir}/backups/${name.replace('.db', '')}-schema-${newestOf(schema) - 1}.db`)).toBe(true)
  })

  test.each([1, schema.first - 1, -1])('of the number %d, below the first, is refused with what to do', (number) => {
    const dir = scratch()
    open(dir, null).close()
    setSchema(pathIn(dir), number)
    const before = readFileSync(pathIn(dir))
    for (const attempt of [open, openToRead]) {
      const { code, message } = refusal(() => attempt(dir))
      expect(code).toBe('schema')
      expect(message).toContain(`${name} has schema ${number}, this program knows ${schema.first} to`)
      expect(message).toContain('Nothing in it was changed')
      expect(message).toMatch(
        name === 'mirror.db' ? /use another data folder \(data\.dir\)/ : /move .*webhooks\.db-shm away/,
      )
    }
    expect(readFileSync(pathIn(dir)).equals(before)).toBe(true)
  })
})

test('a webhooks.db of the schema before names of targets opens with its targets, which are found by their URLs', () => {
  const dir = scratch()
  const url = 'http://127.0.0.1:9/hook'
  const old = new Database(inboxPath(dir))
  old.exec(WEBHOOKS_SCHEMA.steps[0] ?? '')
  old.pragma(`user_version = ${WEBHOOKS_SCHEMA.first}`)
  old.exec(`INSERT INTO relay_target (id, url, state, failures, due_at, given_up) VALUES (3, '${url}', 'failing', 1, 5, 7);
    INSERT INTO relay_event VALUES (1, 'webhook', 'msg_1', 0, x'7b7d'); INSERT INTO relay_delivery VALUES (3, 1, 1, 5)`)
  old.close()
  const db = openInbox(dir, () => undefined)
  const outbox = createRelayOutbox(db)
  expect(outbox.replaceTargets([{ name: 'ci', url }], 0)).toEqual([])
  expect(outbox.listTargets()).toMatchObject([{ id: 3, name: 'ci', url, state: 'failing', pending: 1, givenUp: 7 }])
  db.close()
})
