import { randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import { writeSupportArchive } from '../../../src/features/doctor/support/archive.ts'
import { createScrubber } from '../../../src/features/doctor/support/scrub.ts'
import { hashKey } from '../../../src/store/keys.ts'
import { openInbox } from '../../../src/store/database/open.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { copyFilledFolder } from '../../support/filled-folder.ts'
import { commandHost } from '../../support/hosted.ts'

const command = commandHost()

/** Each secret that was seeded, by where it is. */
type Seeds = Record<string, string>

const random = (bytes = 15): string => randomBytes(bytes).toString('hex')
const signing = (): string => `whsec_${randomBytes(24).toString('base64')}`

/** Puts secrets wherever a mirror can have some; returns them with the environment that names them. */
function seed(dir: string): { seeds: Seeds; env: Record<string, string> } {
  const files: Seeds = {}
  const file = (name: string, text: string): string => {
    const path = join(dir, `${name}.seeded`)
    writeFileSync(path, `${text}\n`, { mode: 0o600 })
    files[`file ${name}`] = text
    return path
  }
  const key = join(dir, 'sign.seeded')
  createKeyFiles(key)
  const settings: Seeds = {
    PATCHMIRROR_UPSTREAM_API_KEY: `sk_${random()}`,
    PATCHMIRROR_OAUTH_CLIENT_SECRET: random(),
    PATCHMIRROR_SERVER_KEYS: `${random()}Z,${random()}Y`,
    PATCHMIRROR_RELAY_SECRET: signing(),
  }
  const url: Seeds = {
    'proxy user': `user${random(5)}`,
    'proxy password': `pass%2F${random(6)}`,
    'relay query': random(),
    'relay path': random(),
    'chat path': random(),
    'environment proxy': random(),
  }
  const fromFiles = {
    PATCHMIRROR_WEBHOOKS_SECRETS_FILE: file('webhooks', signing()),
    OTHER_PASSWORD_FILE: file('other', random()),
  }
  const profile = file('profile', random())
  writeFileSync(profile, `[default]\naws_session_token = ${files['file profile']}\n`)
  const others: Seeds = {
    GITHUB_TOKEN: `ghp_${random()}`,
    AWS_SECRET_ACCESS_KEY: `/${random()}`,
    DATABASE_URL: `postgres://app:${random()}@db/app`,
    NPM_AUTH: random(),
    SMTP_PASSWORD: random(6),
    VAULT_TOKEN: random(),
    REDIS_URL: `redis://app:${random()}@cache`,
    COOKIE_SIGNATURE: random(),
  }
  const stored = seedStore(dir)
  const env = {
    PATCHMIRROR_DATA_DIR: dir,
    PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:1',
    PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
    PATCHMIRROR_OAUTH_CLIENT_ID: 'client',
    PATCHMIRROR_OAUTH_AUTH_URL: 'http://127.0.0.1:1',
    PATCHMIRROR_IDENTITY_API_URL: 'http://127.0.0.1:1/v1',
    PATCHMIRROR_NETWORK_TRUSTED: '*',
    PATCHMIRROR_UPSTREAM_PROXY: `http://${url['proxy user']}:${url['proxy password']}@127.0.0.1:2`,
    PATCHMIRROR_RELAY_TARGETS:
      `http://127.0.0.1:1/${url['relay path']}?token=${url['relay query']},` +
      `chat+http://127.0.0.1:1/services/${url['chat path']}`,
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: key,
    HTTPS_PROXY: `http://u:${url['environment proxy']}@127.0.0.1:2`,
    ...settings,
    ...fromFiles,
    AWS_SHARED_CREDENTIALS_FILE: profile,
    ...others,
  }
  const split = Object.entries({ ...settings, ...others }).flatMap(([name, text]) =>
    text.split(',').map((one, at) => [`${name} ${at}`, secretIn(one)] as const),
  )
  const pem = readFileSync(key, 'utf8').split('\n')[1] ?? ''
  const known: Seeds = { ...Object.fromEntries(split), ...url, ...files, pem }
  // Each of them in the log as well, as a careless library would write it.
  for (const secret of Object.values(known)) {
    const forms = [secret, Buffer.from(secret).toString('base64'), encodeURIComponent(secret)]
    appendFileSync(join(dir, 'daemon.log'), `a request with ${forms.join(' ')} failed\n`)
  }
  const seeds = { ...known, ...stored }
  return { seeds, env }
}

/** A secret as it may be written. */
const formsOf = (secret: string): string[] => [
  secret,
  decodeURIComponent(secret),
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64').replace(/=+$/, '').slice(0, -1),
]

/** The password of a URL with one; any other text as it is. */
const secretIn = (text: string): string => /:\/\/[^:]+:([^@]+)@/.exec(text)?.[1] ?? text

/** The data folder's own secrets, and those that came into its rows and its log from elsewhere. */
function seedStore(dir: string): Seeds {
  const first = signing()
  const second = signing()
  const secrets = [
    { label: 'one', secret: first, subscription: null },
    { label: 'two', secret: second, subscription: 'sub-2' },
  ]
  writeFileSync(join(dir, 'webhook-secrets.json'), JSON.stringify({ secrets }), { mode: 0o600 })
  const local = `pmk_${randomBytes(24).toString('base64url')}`
  writeFileSync(join(dir, 'local.key'), `${local}\n`, { mode: 0o600 })
  const seeds: Seeds = { 'webhook secret 1': first, 'webhook secret 2': second, 'local key': local }
  const said: Record<string, (secret: string) => string> = {
    bearer: (one) => `upstream answered 401 to Authorization: Bearer ${one}`,
    basic: (one) => `sent Basic ${Buffer.from(`${one}:`).toString('base64')}`,
    userinfo: (one) => `GET https://someone:${one}@service.example/v1 failed`,
    'pre-signed': (one) => `the document at https://s3.example/doc?X-Amz-Signature=${one}&x=1 broke off`,
    fragment: (one) => `https://a.example/#access_token=${one}`,
    jwt: (one) => `token eyJ${one}.eyJ${one}.${one}`,
    assignment: (one) => `password=${one} was refused`,
    'json text': (one) => `{"client_secret":"${one}"}`,
    'other local key': (one) => `key pmk_${one} was revoked`,
    'other webhook secret': (one) => `whsec_${one} does not fit`,
    'escaped webhook secret': () => first.replaceAll('+', '%2B').replaceAll('/', '%2F').replaceAll('=', '%3D'),
    'encoded local key': () => Buffer.from(local).toString('base64'),
  }
  const store = openWrites(dir)
  const log: string[] = []
  const runs = Object.entries(said).map(([name, say]) => {
    const one = random()
    const text = say(one)
    seeds[name] = secretOf(text, name, one)
    log.push(text)
    return text
  })
  for (const message of runs) {
    const id = store.runs.startRun({ source: 'feeds', kind: 'sync', trigger: 'command', startedAt: 1 })
    const facts = { note: message, list: [message] }
    const end = { asOf: null, snapshot: null, code: 'internal', state: 'failed' } as const
    store.runs.endRun(id, { ...end, message, endedAt: 2, facts })
  }
  const { secret, keys } = store.keys.readKeyBackup() ?? { secret: Buffer.alloc(0), keys: [] }
  seeds['database secret, hex'] = secret.toString('hex')
  seeds['database secret, Base64'] = secret.toString('base64')
  seeds['hash of a key'] = hashKey(local, secret).toString('hex')
  expect(keys).toEqual([])
  store.close()
  const inbox = openInbox(dir)
  seeds['reason of a relay target'] = random()
  inbox
    .prepare(
      "INSERT INTO relay_target (id, url, state, since, failures, due_at, reason, given_up) VALUES (7, ?, 'disabled', 1, 9, 0, ?, 0)",
    )
    .run('http://127.0.0.1:1/x', `answered 400 to secret=${seeds['reason of a relay target']}`)
  inbox.close()
  writeFileSync(join(dir, 'daemon.log'), `${log.join('\n')}\n`)
  return seeds
}

/** Returns the secret that is in a text: `one`, or the text itself where it is another form of a secret. */
function secretOf(text: string, name: string, one: string): string {
  if (/webhook secret$|local key$/.test(name) && !text.includes(one)) return text
  return name === 'basic' ? (text.split(' ').at(-1) ?? '') : one
}

longTest('a support archive contains none of forty secrets, and only its owner may read it', async () => {
  const dir = await copyFilledFolder({ sandbox: { records: 3 } }, ['feeds'])
  const { seeds, env } = seed(dir)
  expect(Object.keys(seeds).length).toBeGreaterThanOrEqual(40)
  const file = join(dir, 'support.zip')
  const log = join(dir, 'daemon.log')
  const { code, out, err } = await command(['doctor', '--save', file, '--log', log], env, dir)
  expect([code, err]).toEqual([0, ''])
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const members = new AdmZip(file).getEntries().map((entry) => [entry.entryName, entry.getData().toString()] as const)
  expect(members.map(([name]) => name)).toEqual([
    'doctor.json',
    'status.json',
    'runs.json',
    'settings.json',
    'versions.json',
    'log-tail.txt',
  ])
  const texts = [...members, ['standard output', out] as const]
  const leaks = Object.entries(seeds).flatMap(([place, secret]) =>
    texts
      .filter(([, text]) => formsOf(secret).some((form) => text.includes(form)))
      .map(([name]) => `${place} in ${name}`),
  )
  expect(leaks).toEqual([])
  for (const [name, text] of members) if (name.endsWith('.json')) JSON.parse(text)
  const all = new Map(members)
  expect(all.get('settings.json')).toContain('upstream.apiRoot')
  expect(all.get('doctor.json')).toContain('"name": "proxy"')
  expect(JSON.parse(all.get('runs.json') ?? '')).toHaveLength(13)
  expect(all.get('log-tail.txt')).toContain('upstream answered 401')

  const before = readFileSync(file)
  const again = await command(['doctor', '--save', file], env, dir)
  expect([again.code, again.err]).toEqual([2, expect.stringContaining('there is a file of this name')])
  expect(readFileSync(file).equals(before)).toBe(true)
})

longTest('the doctor of the command line prints a line for each check, JSON, and the exit code', async () => {
  const dir = await copyFilledFolder({ sandbox: { records: 3 } }, ['feeds'])
  const env = {
    PATCHMIRROR_DATA_DIR: dir,
    PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
    PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:1',
  }
  const { code, out, err } = await command(['doctor'], env, dir)
  expect([code, err]).toEqual([1, ''])
  expect(out).toMatch(/^fail +tcp +127\.0\.0\.1:1 .*ECONNREFUSED.*\n +→ Check the port/m)
  expect(out).toMatch(/^ok +database /m)
  const json = await command(['doctor', '--json'], env, dir)
  const { checks } = JSON.parse(json.out) as { checks: { name: string; state: string }[] }
  expect(checks.filter(({ state }) => state === 'fail').map(({ name }) => name)).toEqual(['tcp'])
  expect(json.code).toBe(1)
  const broken = await command(['doctor'], { ...env, PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:many' }, dir)
  expect([broken.code, broken.out]).toEqual([1, expect.stringMatching(/^fail +settings /m)])
})

test('a support archive that cannot be written is a storage error, and no part of it stays', async () => {
  const path = join(await copyFilledFolder({ sandbox: { records: 3 } }, ['feeds']), 'report.zip')
  const full = (): never => {
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  }
  expect(() => writeSupportArchive(path, { a: 'text' }, { text: full, value: full })).toThrow(
    expect.objectContaining({ code: 'storage', message: expect.stringContaining(path) as string }),
  )
  expect(existsSync(path)).toBe(false)
})

test('a scrubber removes hundreds of long secrets in every form', () => {
  const secrets = Array.from({ length: 500 }, () => randomBytes(200).toString('base64'))
  const { text } = createScrubber(secrets)
  const last = secrets[499] ?? ''
  const coded = Buffer.from(`user:${last}`).toString('base64')
  expect(text(`${last} ${encodeURIComponent(last)}`)).toBe('******** ********')
  expect(text(coded).length).toBeLessThan(20)
})

test('a scrubber does not change texts that are not secret', () => {
  const { text, value } = createScrubber(['swordfish-42', ''])
  expect(text('GET https://api.example.com/v1/tags: 503, key 3 of 4; sha256:0123abcd')).toBe(
    'GET https://api.example.com/v1/tags: 503, key 3 of 4; sha256:0123abcd',
  )
  expect(value({ a: ['x swordfish-42 y', 1, null], 'swordfish-42': true })).toEqual({
    a: ['x ******** y', 1, null],
    '********': true,
  })
})
