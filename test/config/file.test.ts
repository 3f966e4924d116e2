import { expect, test } from 'vitest'
import { fileWith, load, loadYaml, refusal, scratch } from './loading.ts'

test('a missing file and a folder are named', () => {
  const folder = scratch()
  expect(refusal(() => load({ file: `${folder}/none.yaml` }))).toContain(
    `configuration file ${folder}/none.yaml: there is no such file`,
  )
  expect(refusal(() => load({ file: folder }))).toContain(`${folder}: it is a folder, not a file`)
})

test('an unreadable file does not hide problems of the environment', () => {
  const message = refusal(() => load({ file: '/nowhere', env: { PATCHMIRROR_LOG_LEVEL: 'x' } }))
  expect(message).toContain('/nowhere')
  expect(message).toContain('PATCHMIRROR_LOG_LEVEL')
})

test('a YAML syntax error is reported with its line', () => {
  const file = fileWith('server:\n  port: 1\n  host: "open\n')
  expect(refusal(() => load({ file }))).toMatch(/patchmirror\.yaml, line \d: not valid YAML: Missing/)
  expect(refusal(() => loadYaml('server:\n\tport: 1\n'))).toContain('line 2: not valid YAML: Tabs')
})

test('a message about a YAML error never quotes the text, because it may be a secret', () => {
  const broken = 'upstream:\n  proxy: "http://a:hunter2@b" hunter2\n  caFile: |hunter2\n'
  expect(refusal(() => loadYaml(broken))).not.toContain('hunter2')
  const tagged = 'upstream:\n  userAgent: !hunter2 fine\n'
  const { config, warnings } = loadYaml(tagged)
  expect(config.upstream.userAgent).toBe('fine')
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toMatch(/line 2: not valid YAML: Unresolved tag$/)
})

test('a file that is not UTF-8 is refused, before a folder is made of what is left of its name', () => {
  const yaml = 'data: { dir: /srv/für }\n'
  for (const encoding of ['latin1', 'utf16le'] as const) {
    const file = fileWith(Buffer.from(yaml, encoding))
    expect([encoding, refusal(() => load({ file }))]).toEqual([encoding, expect.stringContaining('it is not UTF-8')])
  }
  expect(loadYaml(yaml).config.data.dir).toBe('/srv/für')
})

test('a key that occurs twice is refused', () => {
  expect(refusal(() => loadYaml('server:\n  port: 1\n  port: 2\n'))).toContain(
    'line 3: not valid YAML: the same key is there twice',
  )
})

test.each(['- a\n- b\n', 'text', '42'])('a file that is no mapping is refused: %j', (yaml) => {
  expect(refusal(() => loadYaml(yaml))).toContain('the file is not a mapping of sections')
})

test('two documents in one file are refused', () => {
  expect(refusal(() => loadYaml('log: {}\n---\nlog: {}\n'))).toContain('not valid YAML')
})

test.each(['', '# only a comment\n', 'null\n', 'server:\nlog: {}\nosv: ~\n', '\uFEFFlog: {}\n'])(
  'an empty file or section changes nothing: %j',
  (yaml) => {
    expect(loadYaml(yaml).config).toEqual(load().config)
  },
)

test.each(['server: 8080', 'server: [port]', 'server: text'])('a section that is no mapping is refused: %s', (yaml) => {
  expect(refusal(() => loadYaml(yaml))).toContain('line 1): not a mapping')
})

test.each([
  ['server: { listn: 1 }', 'server.listn', 'did you mean server.listen?'],
  [
    'upstream: { apiKeyFile: x }',
    'upstream.apiKeyFile',
    'did you mean upstream.apiKey? A file with this secret is named by the environment variable PATCHMIRROR_UPSTREAM_API_KEY_FILE.',
  ],
  [
    'server: { keysFile: x }',
    'server.keysFile',
    'did you mean server.keys? A file with this secret is named by the environment variable PATCHMIRROR_SERVER_KEYS_FILE.',
  ],
  [
    'client_secret_file: x',
    'client_secret_file',
    'did you mean clientSecret below oauth? A file with this secret is named by the environment variable PATCHMIRROR_OAUTH_CLIENT_SECRET_FILE.',
  ],
  ['upstream: { api_root: x }', 'upstream.api_root', 'did you mean upstream.apiRoot?'],
  ['server: { port: 8080 }', 'server.port', 'unknown key; those of server are listen, certFile'],
  ['osv: { concurrency: 1 }', 'osv.concurrency', 'did you mean upstream.concurrency?'],
  ['servr: { port: 1 }', 'servr', 'did you mean server?'],
  ['server.listen: 1', 'server.listen', 'did you mean listen below server?'],
  ['listen: 1', 'listen', 'did you mean listen below server?'],
  ['backups: { to: x }', 'backups', 'the sections are upstream, oauth'],
])('an unknown key is refused with a suggestion: %s', (yaml, key, hint) => {
  const message = refusal(() => loadYaml(yaml))
  expect(message).toContain(`${key} (file `)
  expect(message).toContain(hint)
})

test('an unknown key that resembles nothing gets no suggestion, and its value is not shown', () => {
  const message = refusal(() => loadYaml('server: { zzqqxxyy: hunter2 }'))
  expect(message).toContain('unknown key')
  expect(message).not.toContain('did you mean')
  expect(message).not.toContain('hunter2')
})

test.each(['constructor: {}', '__proto__: {}', 'server: { toString: 1 }', 'server: { __proto__: {} }'])(
  'property names that every JavaScript object has are refused as unknown keys: %s',
  (yaml) => {
    expect(refusal(() => loadYaml(yaml))).toContain('unknown')
  },
)

test('a key that is not text is refused', () => {
  expect(refusal(() => loadYaml('? [a, b]\n: {}\n'))).toContain('a key that is not text')
})

test('null is a value where a setting may be unset, and a mistake where it may not', () => {
  const env = { PATCHMIRROR_UPSTREAM_USER_AGENT: '' }
  const { config, origins } = loadYaml('upstream: { userAgent: null }', { env })
  expect(config.upstream.userAgent).toBeNull()
  expect(origins.get('upstream.userAgent')).toMatch(/^file /)
  expect(refusal(() => loadYaml('server:\n  listen:\n'))).toContain('server.listen (file')
  expect(refusal(() => loadYaml('server:\n  listen:\n'))).toContain(
    'has no value (remove the line to keep the default)',
  )
})

test('anchors and aliases work for values and for sections', () => {
  const yaml = 'catalog: &both\n  schedule: 1 2 * * *\n  reconcileHours: &age 40\nsync:\n  maxAgeHours: *age\n'
  expect(loadYaml(yaml).config.feeds.maxAgeHours).toBe(40)
  const shared = 'osv: &both { schedule: 30 1 * * * }\ncatalog: *both\n'
  expect(loadYaml(shared).config.catalog.schedule).toBe('30 1 * * *')
})

test('an alias without an anchor, or one that expands without limit, is refused', () => {
  expect(refusal(() => loadYaml('server: { port: *gone }'))).toContain('line 1')
  const layers = Array.from({ length: 9 }, (_, at) => {
    const name = String.fromCharCode(98 + at)
    const below = `*${String.fromCharCode(97 + at)}`
    return `&${name} [${Array(9).fill(below).join(', ')}]`
  })
  const bomb = `feeds:\n  extraPaths: [&a [x], ${layers.join(', ')}]\n`
  expect(refusal(() => loadYaml(bomb))).toContain('aliases (*) cannot be resolved')
})
