import { generateKeyPairSync } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  createKeyFiles,
  readPublicKey,
  readSigningKey,
  readSigningKeys,
} from '../../../../src/features/bundles/format/keys.ts'
import { parseManifest } from '../../../../src/features/bundles/format/manifest.ts'
import { head, scratch } from '../fixtures.ts'

describe('a bundle key', () => {
  test('is made as two files, the private one for its owner alone, and none is overwritten', () => {
    const path = join(scratch(), 'key')
    const made = createKeyFiles(path)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const signing = readSigningKey(path)
    const bytes = Buffer.from('text')
    for (const key of [made, readPublicKey(`${path}.pub`), readPublicKey(made.line)]) {
      expect([key.id, key.line]).toEqual([signing.id, signing.line])
      expect(key.verifies(bytes, signing.sign(bytes))).toBe(true)
      expect(key.verifies(Buffer.from('tex'), signing.sign(bytes))).toBe(false)
      expect(key.verifies(bytes, Buffer.alloc(63))).toBe(false)
    }
    expect(JSON.stringify(signing)).not.toContain('PRIVATE')
    expect(() => createKeyFiles(path)).toThrow('is not overwritten')
    const other = join(scratch(), 'other')
    writeFileSync(`${other}.pub`, 'mine')
    expect(() => createKeyFiles(other)).toThrow('No key was created')
    expect([existsSync(other), readFileSync(`${other}.pub`, 'utf8')]).toEqual([false, 'mine'])
  })

  test('that two files of the settings have signs once', () => {
    const path = join(scratch(), 'key')
    const { id } = createKeyFiles(path)
    copyFileSync(path, `${path}-copy`)
    const { id: other } = createKeyFiles(`${path}-other`)
    const keys = readSigningKeys([path, `${path}-other`, `${path}-copy`])
    expect(keys.map((key) => key.id)).toEqual([id, other])
  })

  test('of another kind, encrypted, lost or on the wrong side is refused, and not quoted', () => {
    const folder = scratch()
    const write = (name: string, text: string | Buffer): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const { privateKey, publicKey } = generateKeyPairSync('x25519')
    const { privateKey: own } = generateKeyPairSync('ed25519')
    const pem = { type: 'pkcs8', format: 'pem' } as const
    const other = write('x25519', privateKey.export(pem))
    const otherPublic = write('x25519.pub', publicKey.export({ type: 'spki', format: 'pem' }))
    const locked = write('locked', own.export({ ...pem, cipher: 'aes-256-cbc', passphrase: 'x' }))
    const plain = write('plain', own.export(pem))
    expect(() => readSigningKey(other)).toThrow('Ed25519')
    expect(() => readPublicKey(otherPublic)).toThrow('Ed25519')
    expect(() => readSigningKey(locked)).toThrow('without a passphrase')
    expect(() => readSigningKey(write('none', 'nothing'))).toThrow('not a PEM private key')
    expect(() => readSigningKey(join(folder, 'gone'))).toThrow('there is no such file: check the path')
    expect(() => readPublicKey(plain)).toThrow('public half')
    expect(() => readPublicKey('ed25519:AAAA')).toThrow('32 bytes')
    expect(() => readPublicKey(write('no.pub', 'nothing'))).toThrow('not a PEM public key')
  })
})

describe('a bundle manifest', () => {
  const good = { ...head(), keys: [], members: [] }
  const parse = (fields: object): unknown => parseManifest(Buffer.from(JSON.stringify({ ...good, ...fields })))

  test('is read as it was written', () => {
    expect(parse({})).toEqual(JSON.parse(JSON.stringify(good)))
  })

  const source = good.sources.osv
  test.each<[object, string]>([
    [{ format: 2 }, 'newer Patchmirror'],
    [{ format: '1' }, 'format is not one of 1'],
    [{ more: 1 }, 'a field that it cannot have: "more"'],
    [{ mirror: 'us' }, "mirror is not a mirror's identity"],
    [{ sequence: 0 }, 'sequence is not a whole number'],
    [{ sequence: 2 ** 60 }, 'sequence is not a whole number'],
    [{ createdAt: 'today' }, 'createdAt is not a date'],
    [{ createdAt: '2026-02-30T00:00:00.000Z' }, 'createdAt is not a date'],
    [{ expiresAt: good.createdAt }, 'expires before it was made'],
    [{ sources: {} }, 'it has no source'],
    [{ sources: { other: source } }, 'a key that it cannot have: "other"'],
    [{ sources: { osv: { ...source, bases: ['x'] } } }, 'bases[0] is not a SHA-256'],
    [{ sources: { osv: { ...source, bases: ['0'.repeat(64)] } } }, 'a full bundle with bases'],
    [{ kind: 'delta' }, 'a delta bundle with base null'],
    [{ keys: ['0'.repeat(16), '0'.repeat(16)] }, 'names a key twice'],
    [{ keys: Array.from({ length: 17 }, (_, i) => `${i}`.padStart(16, '0')) }, 'over the cap'],
    [{ members: {} }, 'members is not a list'],
    [{ members: [null] }, 'members[0] is not an object'],
    [{ counts: { __proto__x: {} } }, 'a key that it cannot have'],
    [{ program: 'a\u001b[2J' }, 'program is not'],
  ])('is refused with %j', (fields, reason) => {
    expect(() => parse(fields)).toThrow(reason)
  })

  test('that is not JSON, not UTF-8 or not an object is refused', () => {
    for (const bytes of ['', '[]', 'null', '1', '{"format":1', '"\xff"', '['.repeat(100_000)])
      expect(() => parseManifest(Buffer.from(bytes, 'latin1'))).toThrow('manifest.json')
    expect(() => parseManifest(Buffer.from(JSON.stringify(good).replace('{', '{"__proto__":{"a":1},')))).toThrow(
      '__proto__',
    )
  })
})
