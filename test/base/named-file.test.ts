import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, ftruncateSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSecretLines } from '../../src/cli/webhooks/secrets.ts'
import { loadQuick } from '../support/limits.ts'
import { whyUnreadable } from '../../src/base/errors.ts'
import { readNamedFile } from '../../src/base/files.ts'
import { readLinkSecretFile } from '../../src/base/domain/link-secret-file.ts'
import { openArchive } from '../../src/archive/zip/reader.ts'

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-named-'))
const pipe = join(dir, 'pipe')
const large = join(dir, 'large')
beforeAll(() => {
  execFileSync('mkfifo', [pipe])
  const file = openSync(large, 'w')
  ftruncateSync(file, 3 * 2 ** 30) // without blocks on the disk
  closeSync(file)
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** Readers of files that operators name; each returns what it says of the file, or throws it. */
const READERS: readonly [string, (path: string) => unknown][] = [
  ['a file', (path) => readNamedFile(path)],
  ['the settings', (file) => loadQuick({ env: {}, cwd: dir, file })],
  ['the file of a secret', (path) => load({ PATCHMIRROR_UPSTREAM_API_KEY_FILE: path })],
  ['the file of keys', (path) => load({ PATCHMIRROR_SERVER_KEYS_FILE: path })],
  ['a file of authorities', (path) => load({ PATCHMIRROR_UPSTREAM_CA_FILE: path })],
  ['a certificate', (path) => load({ PATCHMIRROR_SERVER_CERT_FILE: path })],
  ['a signing key', (path) => load({ PATCHMIRROR_BUNDLE_SIGNING_KEYS: path })],
  ['the secret of links', (path) => readLinkSecretFile(path)],
  ['secrets of webhooks', (path) => readSecretLines(path)],
]

const load = (env: Record<string, string>): unknown => loadQuick({ env, cwd: dir })

function wordsOf(read: () => unknown): string {
  try {
    return String(read())
  } catch (error) {
    return whyUnreadable(error)
  }
}

describe('a path that an operator names', () => {
  test.each(READERS)('is refused for %s in words when it is no file of a usual size', (_what, read) => {
    expect(wordsOf(() => read('/dev/zero'))).toContain('a pipe, a device or a socket')
    expect(wordsOf(() => read(pipe))).toContain('a pipe, a device or a socket')
    expect(wordsOf(() => read(large))).toMatch(/more than \d+ bytes/)
    expect(wordsOf(() => read(dir))).toMatch(/it is a folder|EISDIR/)
  })

  test('is refused as an archive too when it is a pipe', async () => {
    const limits = { maxMemberBytes: 1000, maxDirectoryBytes: 1000 }
    await expect(openArchive(pipe, limits)).rejects.toThrow('a pipe, a device or a socket')
  })

  test('is read to its end when it is a file, whatever size the system says', () => {
    const path = join(dir, 'plain')
    writeFileSync(path, 'x'.repeat(200_000))
    expect(readNamedFile(path).length).toBe(200_000)
    expect(readNamedFile('/proc/self/status').length).toBeGreaterThan(100)
  })
})
