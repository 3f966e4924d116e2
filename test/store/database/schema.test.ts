import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/base/digest.ts'
import { migrate } from '../../../src/store/database/migrate.ts'
import { MIGRATIONS } from '../../../src/store/database/migrations/mirror.ts'
import { INBOX_MIGRATIONS } from '../../../src/store/database/migrations/webhooks.ts'
import { type Db, databasePath, inboxPath, openInbox, openWriter } from '../../../src/store/database/open.ts'
import { scratch } from '../fixtures.ts'

/** Returns the schema of a database: its version, and the definition of everything in it. */
function schemaOf(db: Db): unknown {
  const objects = db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name')
  return [db.pragma('user_version', { simple: true }), objects.all()]
}

/** Creates a database with the first steps alone, as a program of that version did, in a folder. */
function createOld(path: string, steps: readonly string[]): void {
  mkdirSync(dirname(path), { recursive: true })
  const db = new Database(path)
  db.function('random_bytes', (length) => Buffer.alloc(Number(length), 7))
  migrate(db, steps)
  db.close()
}

/** Returns 16 hex digits that identify a step, whatever its comments and spaces. */
function digestOf(step: string): string {
  const text = step.replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim()
  return sha256Hex(Buffer.from(text)).slice(0, 16)
}

/** Digest of each step, in order. A step is never edited: folders of earlier versions exist. */
const MIRROR_STEPS: readonly string[] = [
  'f7e27fc7f6e19b16',
  '5f01a0f586ade27b',
  'b994380dbd4ab40c',
  '4aace5d179836799',
  'c8671d9ae6f55ef9',
  'd437adc83eed3ce4',
  '48572e3fdb1de5bd',
  'aa0b0d5c0697b24b',
  'f2cbaf6a2ce82216',
  '971f2c15aecd66ce',
  'db88ce266e5201df',
  'bb1d401780e6559a',
  'bb4069e96ca73703',
  '687a04883fcf1ac2',
  'a3b3f2e15508df84',
  '302bad5d379d1b5c',
  '886fd0934cafaa53',
  '9c40cf396a4c3a19',
  '027a6ad6bee5bfe8',
  '153ef872b860262d',
  '70ac055c63b22d66',
  '7f9fcce869414681',
  '7e2c446a1a2d242d',
  'a615cc16474448c5',
  'f90484e5c34d19d1',
]
const INBOX_STEPS: readonly string[] = [
  '56b98f89d67caa9d',
  '88b67688bd5fda45',
  '2c762e2af25ca36e',
  '48b89cb05539f345',
  '68863877432e8978',
  '6fdeb78bc90d1d6c',
]

describe.each([
  ['mirror.db', MIGRATIONS, MIRROR_STEPS, databasePath, openWriter],
  ['webhooks.db', INBOX_MIGRATIONS, INBOX_STEPS, inboxPath, openInbox],
] as const)('the schema of %s', (_, steps, digests, pathIn, open) => {
  test('is the same in a new folder and in one that was upgraded from any earlier version', () => {
    const fresh = open(scratch(), () => undefined)
    const expected = schemaOf(fresh)
    fresh.close()
    for (let version = 1; version < steps.length; version++) {
      const dir = scratch()
      createOld(pathIn(dir), steps.slice(0, version))
      const upgraded = open(dir, () => undefined)
      expect([version, schemaOf(upgraded)]).toEqual([version, expected])
      upgraded.close()
    }
  })

  test('is changed by a further step, and no earlier step is edited', () => {
    expect(steps.map(digestOf)).toEqual(digests)
  })
})

test('an artifact in whose place JSON without a document was kept is asked for again after the upgrade', () => {
  const dir = scratch()
  const step = MIGRATIONS.findIndex((text) => text.includes('catalog_lacking ADD COLUMN status'))
  createOld(databasePath(dir), MIGRATIONS.slice(0, step))
  const old = new Database(databasePath(dir))
  const paths = ['/v1/tags/a/sbom', '/v1/tags/b/sbom', '/v1/tags/a', '/v1/packages/p/artifacts/patches']
  for (const path of paths)
    old
      .prepare(
        `INSERT INTO catalog_answer (path, resource, owner, owner_sha, status, size, sha256, changed, links, mentions)
         VALUES (?, 'tags', 'tags/a', x'1111', 200, 2, x'00', 1, ?, '[]')`,
      )
      .run(path, path === '/v1/tags/b/sbom' ? '[{"at":["url"],"digest":"00"}]' : '[]')
  old.close()
  const upgraded = openWriter(dir, () => undefined)
  const again = upgraded.prepare("SELECT path FROM catalog_answer WHERE owner_sha = x'00'").pluck()
  expect(again.all()).toEqual(['/v1/tags/a/sbom'])
  upgraded.close()
})
