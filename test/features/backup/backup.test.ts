import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import AdmZip from 'adm-zip'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, onTestFinished } from 'vitest'
import { type BackupOptions, writeBackup } from '../../../src/features/backup/write.ts'
import { restoreBackup } from '../../../src/features/backup/restore.ts'
import { openBackup } from '../../../src/features/backup/read.ts'
import { readClaims } from '../../../src/features/bundles/import/envelope.ts'
import { sha256Hex } from '../../../src/base/digest.ts'
import { MIRROR_SCHEMA } from '../../../src/store/database/schema/mirror.ts'
import { newestOf } from '../../../src/store/database/schema/schema.ts'
import { createLedgerReader } from '../../../src/store/replication/ledger.ts'
import { databasePath, openInbox, openReader, openWriter } from '../../../src/store/database/open.ts'
import { acquireLock, lockFile } from '../../../src/store/database/lock.ts'
import { createReads } from '../../../src/store/reads.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { deflate } from '../../../src/base/gzip/member.ts'
import { createZipWriter } from '../../../src/archive/zip/writer.ts'
import { addStep } from '../../store/fixtures.ts'
import { comparable, openBelow, pathsOf, serveFolder } from '../bundles/air-gap.ts'
import { FEEDS } from '../../server/served.ts'
import { FILLED_AT, openFilledStore } from '../../support/filled-store.ts'
import { copyFilledFolder } from '../../support/filled-folder.ts'
import { catalogEnv } from '../../support/catalog/mirror.ts'
import { start } from '../../support/command.ts'
import { mountDisk, unmountDisk } from '../../support/small-disk.ts'
import { longTest, test } from '../../support/tables.ts'

const SMALL = { images: 1, tags: 2, packages: 2, tickets: 3 }

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'patchmirror-backup-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

/** Options of a backup of a data folder into a new file. */
function optionsOf(dataDir: string, path = join(folder(), 'backup.zip')): BackupOptions {
  return {
    dataDir,
    path,
    force: false,
    isPrivate: false,
    program: 'patchmirror/test',
    secretFile: join(dataDir, 'webhook-secrets.json'),
    now: () => FILLED_AT,
  }
}

let made = ''
let packed = ''
let key = ''
/** A mirror of feeds and records with a key, a delivery table and secrets, and a backup of it. */
beforeAll(async () => {
  made = mkdtempSync(join(tmpdir(), 'patchmirror-backup-'))
  const store = openFilledStore(made)
  store.publishOsv(Object.fromEntries(['one', 'two'].map((id) => [id, `{"id":"${id}"}`])))
  store.publishFeeds(FEEDS)
  store.close()
  const writes = openWrites(made)
  key = writes.keys.createKey('ops', FILLED_AT).key
  writes.close()
  openInbox(made).close()
  writeFileSync(join(made, 'webhook-secrets.json'), '{"secrets":[]}', { mode: 0o600 })
  packed = join(made, '..', `${Date.now()}-${process.pid}.backup`)
  await writeBackup(optionsOf(made, packed))
  return () => {
    rmSync(made, { recursive: true, force: true })
    rmSync(packed, { force: true })
  }
})

const digestOf = (dir: string): string => {
  const store = openWrites(dir)
  const { digest } = store.carried.digestSources()
  store.close()
  return digest
}

test('a backup is one private file with a manifest; nothing else remains beside it', async () => {
  const dir = folder()
  const { manifest } = await writeBackup(optionsOf(made, join(dir, 'b.zip')))
  expect(readdirSync(dir)).toEqual(['b.zip'])
  expect(statSync(join(dir, 'b.zip')).mode & 0o777).toBe(0o600)
  expect(manifest).toMatchObject({ digest: digestOf(made), private: false, program: 'patchmirror/test' })
  expect(manifest.files.map(({ name }) => name)).toEqual(['webhooks.db', 'webhook-secrets.json', 'mirror.db'])
  const names = new AdmZip(join(dir, 'b.zip')).getEntries().map(({ entryName }) => entryName)
  expect(names.filter((name) => name.includes('osv-'))).toEqual([]) // derived files are left out
})

test('a backup does not replace a file without force, and a failed one leaves nothing', async () => {
  const options = optionsOf(made)
  writeFileSync(options.path, 'mine')
  await expect(writeBackup(options)).rejects.toThrow(/exists already; --force replaces it/)
  expect(readFileSync(options.path, 'utf8')).toBe('mine')
  await writeBackup({ ...options, force: true })
  await (await openBackup(options.path)).close()
  const empty = optionsOf(folder())
  await expect(writeBackup(empty)).rejects.toThrow(/nothing to back up/)
  expect(readdirSync(join(empty.path, '..'))).toEqual([])
})

test('a backup for which a disk has no room names its folder, and leaves nothing there', async (context) => {
  const disk = mountDisk('200k')
  if (disk === null) return context.skip('no file system can be mounted')
  onTestFinished(() => unmountDisk(disk))
  const written = writeBackup(optionsOf(made, join(disk, 'backup.zip')))
  await expect(written).rejects.toThrow(`are needed in ${disk}, and`)
  expect(readdirSync(disk)).toEqual([])
})

longTest('a backup on a disk that takes no file so large does not call the database unreadable', async () => {
  const to = folder()
  const within = ['prlimit', `--fsize=${64 * 1024}`]
  const env = { PATCHMIRROR_DATA_DIR: made }
  const { code, err } = await start(['backup', join(to, 'backup.zip')], env, to, within).finished
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(/cannot be written to .*backup\.zip: disk I\/O error\. .*FAT takes 4 GB/),
  ])
  expect(readdirSync(to)).toEqual([])
})

longTest('a backup beside a writing process has the state of one snapshot', async () => {
  const dir = folder()
  cpSync(made, dir, { recursive: true })
  const store = openFilledStore(dir)
  onTestFinished(() => store.close())
  let at = FILLED_AT
  const timer = setInterval(() => {
    at += 1000
    store.publishOsv({ one: `{"id":"one","n":${at}}` }, at)
  }, 1)
  const options = optionsOf(dir)
  const { manifest } = await writeBackup(options).finally(() => clearInterval(timer))
  const target = join(folder(), 'data')
  await restoreBackup({
    path: options.path,
    dataDir: target,
    newIdentity: false,
    now: Date.now,
  })
  expect(digestOf(target)).toBe(manifest.digest)
})

test('a restored mirror answers every path byte for byte as the original, with the same keys', async () => {
  const dir = await copyFilledFolder(
    { sandbox: { records: 20, service: SMALL }, envOf: catalogEnv, env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } },
    ['feeds', 'osv', 'catalog'],
  )
  const options = optionsOf(dir)
  await writeBackup(options)
  const target = join(folder(), 'new', 'data')
  await restoreBackup({
    path: options.path,
    dataDir: target,
    newIdentity: false,
    now: Date.now,
  })
  expect(existsSync(join(target, '.restoring'))).toBe(false)
  const here = openBelow(dir)
  const there = openBelow(target)
  onTestFinished(() => [here, there].forEach(({ store }) => store.close()))
  expect(there.digest()).toBe(here.digest())
  const askHere = await serveFolder(dir, here.config)
  const askThere = await serveFolder(target, there.config)
  const paths = pathsOf(here.store)
  expect(paths.length).toBeGreaterThan(30)
  for (const path of paths) {
    if (path.endsWith('all.zip')) continue // rebuilt by the daemon, with the recorded digest
    const one = await askHere(path)
    const other = await askThere(path)
    // Clients of the one that is lost may have newer data, and its dates.
    const { 'last-modified': date } = one.headers
    if (date !== undefined) {
      expect(Date.parse(other.headers['last-modified'] ?? '')).toBeGreaterThanOrEqual(Date.parse(date))
      other.headers['last-modified'] = date
    }
    expect([path, comparable(other)]).toEqual([path, comparable(one)])
  }
})

test('keys and identity are restored; --new-identity gives another one', async () => {
  const same = join(folder(), 'a')
  const other = join(folder(), 'b')
  const first = await restoreBackup({
    path: packed,
    dataDir: same,
    newIdentity: false,
    now: Date.now,
  })
  const second = await restoreBackup({
    path: packed,
    dataDir: other,
    newIdentity: true,
    now: Date.now,
  })
  expect(second.identity).not.toBe(first.identity)
  for (const [dir, identity] of [
    [same, first.identity],
    [other, second.identity],
  ] as const) {
    const db = openReader(dir)
    if (db === null) throw new Error('no database')
    const reads = createReads(db)
    expect(reads.ledger.readIdentity()).toBe(identity)
    expect(reads.keys.listKeys().map(({ prefix }) => key.startsWith(prefix))).toEqual([true])
    db.close()
    expect(
      readdirSync(dir)
        .filter((name) => !/-(wal|shm)$/.test(name))
        .sort(),
    ).toEqual(['mirror.db', 'webhook-secrets.json', 'webhooks.db'])
  }
})

/** Packs one mirror.db without looking into it, as somebody does who makes a backup by other means. */
function packByHand(mirror: string, identity: string, schema: number): string {
  const bytes = readFileSync(mirror)
  const sha256 = sha256Hex(bytes)
  const file = { name: 'mirror.db', bytes: bytes.length, sha256, pieces: 1, schema }
  const manifest = {
    kind: 'patchmirror-backup',
    format: 1,
    program: 'patchmirror/0.9',
    createdAt: '2026-01-01T00:00:00Z',
    private: true,
    identity,
    digest: null,
    sources: {},
    files: [file],
  }
  const chunks: Uint8Array[] = []
  const zip = createZipWriter((chunk) => void chunks.push(Buffer.from(chunk)))
  const add = (name: string, part: Buffer): void => {
    zip.add({ name, crc32: crc32(part), size: part.length, deflated: deflate(part) })
  }
  add('mirror.db/000000', bytes)
  add('manifest.json', Buffer.from(JSON.stringify(manifest)))
  zip.finish()
  const path = join(folder(), 'by-hand.backup')
  writeFileSync(path, Buffer.concat(chunks))
  return path
}

test('a backup of an older schema is migrated when it is restored, and answers', async () => {
  const older = folder()
  openWriter(older).close()
  const db = new Database(databasePath(older))
  db.exec(`INSERT INTO local_key (name, prefix, hash, created_at) VALUES ('old', 'pmk_', x'01', 1)`)
  db.pragma('journal_mode = DELETE')
  const identity = createLedgerReader(db).readIdentity()
  db.close()
  const path = packByHand(databasePath(older), identity, newestOf(MIRROR_SCHEMA))
  addStep()
  const target = join(folder(), 'data')
  await restoreBackup({ path, dataDir: target, newIdentity: false, now: Date.now })
  const writes = openWrites(target)
  onTestFinished(() => writes.close())
  expect(writes.keys.listKeys().map(({ name }) => name)).toEqual(['old'])
  expect(digestOf(target)).toMatch(/^[\da-f]{64}$/)
})

test('a private backup has keys, secret, identity and ledger, and no data', async () => {
  const options = { ...optionsOf(made), isPrivate: true }
  const { manifest } = await writeBackup(options)
  expect(manifest).toMatchObject({ private: true, digest: null, sources: {} })
  const dataDir = join(folder(), 'data')
  await restoreBackup({
    path: options.path,
    dataDir,
    newIdentity: false,
    now: Date.now,
  })
  const [old, restored] = [made, dataDir].map((dir) => openReader(dir))
  if (!old || !restored) throw new Error('no database')
  onTestFinished(() => [old, restored].forEach((db) => db.close()))
  const before = createReads(old)
  const after = createReads(restored)
  expect(after.keys.readKeyBackup()).toEqual(before.keys.readKeyBackup())
  expect(after.ledger.readIdentity()).toBe(before.ledger.readIdentity())
  expect(after.snapshots.readSnapshot('osv')).toBeNull()
})

test('a restore requires an empty folder', async () => {
  const dataDir = folder()
  writeFileSync(join(dataDir, 'mine'), '')
  const restore = () => restoreBackup({ path: packed, dataDir, newIdentity: false, now: Date.now })
  await expect(restore()).rejects.toThrow(/is not empty \(mine\)/)
  expect(readdirSync(dataDir)).toEqual(['mine'])
  mkdirSync(join(dataDir, '.restoring'))
  await expect(restore()).rejects.toThrow(/is not empty \(mine\)/)
  expect(readdirSync(dataDir)).toEqual(['.restoring', 'mine'])
})

test('a restore works in the root folder of a new file system', async () => {
  const dataDir = folder()
  mkdirSync(join(dataDir, 'lost+found'))
  await restoreBackup({ path: packed, dataDir, newIdentity: false, now: Date.now })
  expect(readdirSync(dataDir)).toEqual(expect.arrayContaining(['lost+found', 'mirror.db']))
})

test('a data folder whose restore was stopped is never opened, and the restore can be repeated', async () => {
  const dataDir = join(folder(), 'data')
  const stopped: string[] = []
  await restoreBackup({
    path: packed,
    dataDir,
    newIdentity: false,
    now: Date.now,
    onStep(step) {
      const copy = join(dataDir, '..', `${stopped.length}`)
      cpSync(dataDir, copy, { recursive: true }) // the disk as a process that was killed here leaves it
      stopped.push(step)
    },
  })
  expect(stopped).toEqual([
    'extract',
    'check',
    'publish',
    'publish webhooks.db',
    'publish webhook-secrets.json',
    'publish mirror.db',
    'finish',
  ])
  for (const [i, step] of stopped.entries()) {
    const copy = join(dataDir, '..', `${i}`)
    for (const open of [openReader, openWriter, openInbox, (dir: string) => acquireLock(dir, 'serve')])
      expect(() => open(copy), step).toThrow(/not completely restored .* run "patchmirror restore FILE" again/)
    await restoreBackup({
      path: packed,
      dataDir: copy,
      newIdentity: false,
      now: Date.now,
    })
    expect([step, digestOf(copy)]).toEqual([step, digestOf(made)])
  }
})

test('of two restores into one folder at once, one is refused and takes nothing from the other', async () => {
  const dataDir = join(folder(), 'data')
  const restore = () => restoreBackup({ path: packed, dataDir, newIdentity: false, now: Date.now })
  const staging = join(dataDir, '.restoring')
  mkdirSync(staging, { recursive: true })
  writeFileSync(join(staging, 'mirror.db'), 'half of it')
  const other = lockFile(join(staging, 'lock'))
  await expect(restore()).rejects.toMatchObject({ code: 'locked' })
  expect(readdirSync(staging).sort()).toEqual(['lock', 'mirror.db'])
  other?.release()
  await restore()
  expect(digestOf(dataDir)).toBe(digestOf(made))
})

test('an import of a backup as a bundle is refused with the command that takes it', async () => {
  const bytes = readFileSync(packed)
  const read = (at: number, length: number) => Promise.resolve(bytes.subarray(at, at + length))
  await expect(readClaims({ size: bytes.length, read })).rejects.toThrow('a backup is for "patchmirror restore FILE"')
})

describe('a restore refuses a damaged backup and leaves the data folder empty:', () => {
  const refused = async (path: string): Promise<string> => {
    const dataDir = folder()
    const error = await restoreBackup({
      path,
      dataDir,
      newIdentity: false,
      now: Date.now,
    }).then(
      () => new Error('it was restored'),
      (thrown: unknown) => thrown as Error,
    )
    expect(readdirSync(dataDir)).toEqual([])
    return error.message
  }
  const altered = (change: (bytes: Buffer) => Buffer): string => {
    const path = join(folder(), 'altered')
    writeFileSync(path, change(readFileSync(packed)))
    return path
  }

  test('a flipped byte of any member, and a truncated file', async () => {
    const bytes = readFileSync(packed)
    const members = ['webhooks.db/000000', 'webhook-secrets.json/000000', 'mirror.db/000000', 'manifest.json']
    for (const name of members) {
      const at = bytes.indexOf(name) + name.length + 10
      const path = altered((copy) => (copy.writeUInt8(copy.readUInt8(at) ^ 0x20, at), copy))
      expect(await refused(path)).toMatch(/cannot be restored: its (member )?.* is damaged/)
    }
    for (const part of [0, 0.3, 0.9, 0.999]) {
      const path = altered((copy) => copy.subarray(0, Math.floor(copy.length * part)))
      expect(await refused(path)).toMatch(/cannot be restored: it is no archive, or a damaged one/)
    }
  })

  test.each([
    [
      'a trigger that keeps revoked keys',
      'CREATE TRIGGER keep AFTER UPDATE ON local_key BEGIN UPDATE local_key SET revoked_at = NULL; END',
    ],
    [
      'a view that never ends',
      `DROP TABLE mirror_identity; CREATE VIEW mirror_identity AS
       WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS only, i AS identity FROM n`,
    ],
  ])('%s', async (_, sql) => {
    const dir = folder()
    openWriter(dir).close()
    const db = new Database(databasePath(dir))
    const identity = createLedgerReader(db).readIdentity()
    db.exec(sql)
    db.pragma('journal_mode = DELETE')
    db.close()
    const path = packByHand(databasePath(dir), identity, newestOf(MIRROR_SCHEMA))
    expect(await refused(path)).toMatch(/is not a database as Patchmirror makes it/)
  })

  /** The backup with another manifest, or another content of a file, in sound members. */
  const rewritten = (edit: (name: string, content: string) => string | null): string => {
    const path = join(folder(), 'rewritten')
    const chunks: Uint8Array[] = []
    const zip = createZipWriter((chunk) => void chunks.push(Buffer.from(chunk)))
    for (const entry of new AdmZip(packed).getEntries()) {
      const text = edit(entry.entryName, entry.getData().toString('latin1'))
      if (text === null) continue
      const content = Buffer.from(text, 'latin1')
      const sizes = { crc32: crc32(content), size: content.length }
      zip.add({ name: entry.entryName, ...sizes, deflated: deflate(content) })
    }
    zip.finish()
    writeFileSync(path, Buffer.concat(chunks))
    return path
  }
  const manifest = (edit: (text: string) => string): string =>
    rewritten((name, content) => (name === 'manifest.json' ? edit(content) : content))

  test.each<[what: string, make: () => string, why: RegExp]>([
    ['another file', () => databasePath(made), /no archive/],
    [
      'an archive of something else',
      () => rewritten((name, text) => (name === 'manifest.json' ? '{}' : text)),
      /not a backup of Patchmirror; a bundle is for "patchmirror bundle import FILE"/,
    ],
    [
      'a newer format',
      () => manifest((text) => text.replace('"format": 1', '"format": 2')),
      /format 2, and this program knows 1/,
    ],
    [
      'a newer schema',
      () => manifest((text) => text.replace(/"schema": \d+/, '"schema": 999')),
      /has schema 999, this program knows \d+ to \d+: it was written by a newer Patchmirror/,
    ],
    [
      'a schema below the first',
      () => manifest((text) => text.replace(/"schema": \d+/, '"schema": 5')),
      /has schema 5, this program knows \d+ to \d+: it was written by no release/,
    ],
    [
      'another state digest',
      () => manifest((text) => text.replace(/"digest": "../, '"digest": "00')),
      /another state digest/,
    ],
    [
      'another identity',
      () => manifest((text) => text.replace(/"identity": "../, '"identity": "zz')),
      /another identity/,
    ],
    [
      'a missing member',
      () => rewritten((name, text) => (name.startsWith('webhooks.db') ? null : text)),
      /members, and its manifest names/,
    ],
    [
      'a file that is larger than it says',
      () => manifest((text) => text.replace(/("name": "webhook-secrets.json",\s+"bytes": )\d+/, '$13')),
      /webhook-secrets.json is larger than its manifest says/,
    ],
    [
      'a replaced file',
      () => rewritten((name, text) => (name.startsWith('webhook-') ? '{"secretz":[]}' : text)),
      /webhook-secrets.json is not the one/,
    ],
    [
      'a name outside of the folder',
      () => manifest((text) => text.replace('"name": "webhook-secrets.json"', '"name": "../secrets.json"')),
      /manifest is incomplete/,
    ],
  ])('%s', async (_, make, why) => {
    expect(await refused(make())).toMatch(why)
  })
})
