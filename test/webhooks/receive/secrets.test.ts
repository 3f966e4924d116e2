import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  type KeptSecret,
  parseSecretFile,
  readSecretText,
  replaceSecretFile,
} from '../../../src/webhooks/receive/secret-file.ts'
import { createSecrets } from '../../../src/webhooks/receive/secrets.ts'
import { NOW, scratch } from '../inbox/inboxes.ts'
import { RAW_SECRET, SECRET, keyPair } from '../signing.ts'

const kept = (label: string, more: Partial<KeptSecret> = {}): KeptSecret => ({
  label,
  secret: SECRET,
  subscription: null,
  notBefore: null,
  notAfter: null,
  ...more,
})

/** Secrets over a file, with a clock, and what was logged. */
function open(file: string, more: { settings?: string[]; dialect?: 'standard' } = {}) {
  const clock = { now: NOW }
  const told: string[] = []
  const say = (_: object, message: string): void => void told.push(message)
  const log = { info: say, warn: say, error: say } as never
  const { settings = [], dialect = 'any' } = more
  const secrets = createSecrets({
    settings: () => settings,
    file,
    dialect,
    now: () => clock.now,
    log,
  })
  const labels = (): string[] => secrets.active().map(({ label }) => label)
  return { clock, told, labels, fault: secrets.fault }
}

test('the secrets are read from settings and file, and those of the file have labels and dates', () => {
  const file = join(scratch(), 'secrets.json')
  replaceSecretFile(file, [
    kept('old', { notAfter: NOW + 1000 }),
    kept('new', { notBefore: NOW + 500, subscription: '8f14e45f' }),
  ])
  const { clock, labels } = open(file, { settings: [RAW_SECRET] })
  expect(labels()).toEqual(['settings-1', 'old'])
  clock.now = NOW + 500
  expect(labels()).toEqual(['settings-1', 'old', 'new'])
  clock.now = NOW + 1001
  expect(labels()).toEqual(['settings-1', 'new'])
})

test('the file of secrets is written whole, private to its owner, and read unchanged', () => {
  const dir = scratch()
  const file = join(dir, 'secrets.json')
  writeFileSync(file, 'old', { mode: 0o644 })
  const secrets = [kept('a', { notBefore: NOW, subscription: 'x' }), kept('b')]
  replaceSecretFile(file, secrets)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(parseSecretFile(readSecretText(file) ?? '', file)).toEqual(secrets)
  expect(readdirSync(dir)).toEqual(['secrets.json'])
  expect(() => replaceSecretFile(join(dir, 'none', 'x.json'), secrets)).toThrow('cannot be written')
})

test('a secret file is read again without a restart, also when only its content changed', () => {
  const file = join(scratch(), 'secrets.json')
  const { clock, labels, told, fault } = open(file)
  expect(labels()).toEqual([])
  expect(fault()).toBeNull() // there never was one
  replaceSecretFile(file, [kept('one')])
  expect(labels()).toEqual(['one'])
  const { size, mtime } = statSync(file)
  replaceSecretFile(file, [kept('two')])
  expect(statSync(file).size).toBe(size)
  expect(mtime).toBeInstanceOf(Date)
  clock.now += 1000
  expect(labels()).toEqual(['two'])
  rmSync(file)
  expect(labels()).toEqual([])
  expect(fault()).toEqual({ fault: 'is not there any more', kept: false })
  expect(told.filter((line) => line.startsWith('read the webhook secrets again'))).toHaveLength(3)
})

test('a secret file that became malformed is logged once, and the earlier secrets stay valid', () => {
  const file = join(scratch(), 'secrets.json')
  replaceSecretFile(file, [kept('one')])
  const { clock, labels, told, fault } = open(file)
  writeFileSync(file, `{"secrets":[{"label":"two","secret":"${SECRET}`, { mode: 0o600 })
  for (let i = 0; i < 5; i++) {
    clock.now += 1000
    expect(labels()).toEqual(['one'])
    expect(fault()).toEqual({ fault: 'is not JSON', kept: true })
  }
  expect(told).toHaveLength(1)
  expect(told[0]).toContain('is not JSON')
  expect(told[0]).toContain('The secrets read before stay in force')
  expect(told.join()).not.toContain(SECRET)
  replaceSecretFile(file, [kept('two')])
  expect(labels()).toEqual(['two'])
  expect(fault()).toBeNull()
})

test('a secret file that cannot be read any more is logged once, and the earlier secrets stay valid', () => {
  const file = join(scratch(), 'secrets.json')
  replaceSecretFile(file, [kept('one')])
  const { clock, labels, told, fault } = open(file)
  rmSync(file)
  mkdirSync(file)
  for (let i = 0; i < 5; i++) {
    clock.now += 1000
    expect(labels()).toEqual(['one'])
  }
  expect(told).toHaveLength(1)
  expect(fault()).toEqual({ fault: 'cannot be read (it is a folder: name a file)', kept: true })
  rmSync(file, { recursive: true })
  replaceSecretFile(file, [kept('one')])
  expect([labels(), fault()]).toEqual([['one'], null])
})

test('a secret file that other users can read causes a warning', () => {
  const file = join(scratch(), 'secrets.json')
  replaceSecretFile(file, [kept('one')])
  chmodSync(file, 0o644)
  expect(open(file).told).toEqual([`others may read the webhook secrets: chmod 600 ${file}`])
})

const entry = (more: object): string => JSON.stringify({ secrets: [{ label: 'one', secret: SECRET, ...more }] })

test.each([
  ['{', 'is not JSON'],
  ['[]', 'does not contain {"secrets": […]}'],
  ['{"secrets":{}}', 'does not contain {"secrets": […]}'],
  ['{"secrets":[7]}', '(secret 1) is not an object'],
  [entry({ label: '' }), '(secret 1) has no label'],
  [entry({ label: 'a b' }), '(secret 1) has no label'],
  [entry({ secret: 7 }), '(secret 1) has no secret'],
  [entry({ secret: '' }), '(secret 1) is empty'],
  [entry({ secret: 'whsec_' }), '(secret 1) contains only the prefix'],
  [entry({ secret: 'whsec_abc' }), '(secret 1) is shorter'],
  [entry({ secret: 'a'.repeat(40) }), '(secret 1) is easy to guess'],
  [entry({ secret: keyPair().whsk }), "(secret 1) is the sender's private key"],
  [entry({ secret: keyPair().whpk.slice(0, 30) }), '(secret 1) is no public key'],
  [entry({ subscription: 7 }), 'a subscription that is not text'],
  [entry({ notAfter: 'soon' }), '(secret 1) notAfter is not a date'],
  [entry({ notBefore: 5 }), '(secret 1) notBefore is not a date'],
  [JSON.stringify({ secrets: [kept('one'), kept('one')] }), 'has two secrets with the label one'],
])('a malformed secret file is a clear error at start that quotes no secret: %s', (text, fault) => {
  const file = join(scratch(), 'secrets.json')
  writeFileSync(file, text, { mode: 0o600 })
  const start = (): unknown => open(file)
  expect(start).toThrow(fault)
  expect(start).toThrow(file)
  expect(start).toThrow('Repair or remove it')
  expect(start).not.toThrow(SECRET.slice(6))
})

test('a secret file that cannot be read is a clear error at start', () => {
  const folder = join(scratch(), 'secrets.json')
  mkdirSync(folder)
  expect(() => open(folder)).toThrow('cannot be read (it is a folder: name a file)')
})

test('a secret file can contain public keys, pinned forms, and secrets as a dashboard prints them', () => {
  const file = join(scratch(), 'secrets.json')
  const { whpk } = keyPair()
  replaceSecretFile(file, [kept('one', { secret: `v1,${SECRET}` }), kept('key', { secret: whpk })])
  const read = parseSecretFile(readSecretText(file) ?? '', file)
  expect(read.map(({ secret }) => secret)).toEqual([SECRET, whpk])
  expect(open(file, { dialect: 'standard' }).labels()).toEqual(['one', 'key'])
})

test('a pinned form that needs a decoded key refuses secrets without one', () => {
  const file = join(scratch(), 'secrets.json')
  replaceSecretFile(file, [kept('one', { secret: RAW_SECRET })])
  expect(() => open(file, { dialect: 'standard' })).toThrow('one is not base64')
})

test.runIf(process.platform === 'linux')(
  'a file that fits on the disk in part only does not take the place of the one before',
  () => {
    const file = join(scratch(), 'webhook-secrets.json')
    const code = new URL('../../../src/webhooks/receive/secret-file.ts', import.meta.url).href
    const script = `
      const { replaceSecretFile } = await import(${JSON.stringify(code)})
      const kept = (label) => ({ label, secret: ${JSON.stringify(SECRET)}, subscription: null, notBefore: null, notAfter: null })
      replaceSecretFile(process.argv[1], [kept('before')])
      replaceSecretFile(process.argv[1], Array.from({ length: 100 }, (_, at) => kept('after' + at)))`
    const limited = 'trap "" XFSZ; ulimit -f 4; exec "$0" --input-type=module -e "$1" "$2"'
    const { stderr } = spawnSync('sh', ['-c', limited, process.execPath, script, file])
    expect(stderr.toString()).toContain('EFBIG')
    const kept = parseSecretFile(readFileSync(file, 'utf8'), file)
    expect(kept.map(({ label }) => label)).toEqual(['before'])
  },
)
