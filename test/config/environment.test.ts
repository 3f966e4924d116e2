import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { SETTINGS } from '../../src/config/settings.ts'
import { fileWith, load, loadYaml, refusal, scratch } from './loading.ts'

const PROXY = 'http://mirror:hunter2@proxy.example.com:3128'

test('a variable is named after its setting, with an underscore before each capital', () => {
  const names = new Map(SETTINGS.map(({ key, env }) => [key, env]))
  expect(names.get('upstream.apiRoot')).toBe('PATCHMIRROR_UPSTREAM_API_ROOT')
  expect(names.get('data.dir')).toBe('PATCHMIRROR_DATA_DIR')
  expect(names.get('server.maxConnectionsPerAddress')).toBe('PATCHMIRROR_SERVER_MAX_CONNECTIONS_PER_ADDRESS')
})

test('no two settings share a variable', () => {
  const names = SETTINGS.flatMap(({ env, fileEnv }) => (fileEnv === null ? [env] : [env, fileEnv]))
  expect(new Set(names).size).toBe(names.length)
})

test('text becomes the type of the setting', () => {
  const { config } = load({
    env: {
      PATCHMIRROR_UPSTREAM_API_ROOT: 'https://api.example.com',
      PATCHMIRROR_SERVER_KEEP_ALIVE_SECONDS: ' 90 ',
      PATCHMIRROR_GUARD_LIMIT: 'changed=25% and 3',
      PATCHMIRROR_SERVER_STRICT_PARAMETERS: 'False',
      PATCHMIRROR_SERVER_CACHE_BYTES: '1 MiB',
      PATCHMIRROR_UPSTREAM_MAX_BYTES: 'record=2000, list = 3 GB',
      PATCHMIRROR_FEEDS_EXTRA_PATHS: '/external/a, /external/b,',
      PATCHMIRROR_LOG_LEVEL: 'debug',
    },
  })
  expect(config.upstream).toMatchObject({
    apiRoot: 'https://api.example.com',
    maxBytes: { json: 256_000_000, record: 2000, archive: 8_000_000_000, list: 3_000_000_000 },
  })
  expect(config.server).toMatchObject({ keepAliveSeconds: 90, cacheBytes: 1_048_576 })
  expect(config.guard.limit).toEqual({ changed: '25% and 3', removed: '10% and 20' })
  expect(config.server.strictParameters).toBe(false)
  expect(config.feeds.extraPaths).toEqual(['/external/a', '/external/b'])
  expect(config.log.level).toBe('debug')
})

test('an empty variable counts as not set, known or not', () => {
  const env = {
    PATCHMIRROR_SERVER_LISTEN: '',
    PATCHMIRROR_UPSTREAM_PROXY_FILE: '',
    PATCHMIRROR_X: '',
  }
  const { config } = loadYaml('server: { listen: localhost:9000 }', { env })
  expect(config.server.port).toBe(9000)
})

test.each([
  ['PATCHMIRROR_SERVER_LISTN', 'did you mean PATCHMIRROR_SERVER_LISTEN?'],
  ['PATCHMIRROR_SERVR_LISTEN', 'did you mean PATCHMIRROR_SERVER_LISTEN?'],
  ['PATCHMIRROR_UPSTREAM_APIROOT', 'did you mean PATCHMIRROR_UPSTREAM_API_ROOT?'],
  ['PATCHMIRROR_API_ROOT', 'did you mean PATCHMIRROR_UPSTREAM_API_ROOT?'],
  ['PATCHMIRROR_UPSTREAM_APIKEY_FILE', 'did you mean PATCHMIRROR_UPSTREAM_API_KEY_FILE?'],
  ['PATCHMIRROR_LISTEN', 'did you mean PATCHMIRROR_SERVER_LISTEN?'],
  ['PATCHMIRROR_WEBHOOKS_SECRET', 'did you mean PATCHMIRROR_WEBHOOKS_SECRETS?'],
  ['PATCHMIRROR_SERVER_LISTEN_FILE', 'server.listen is not secret'],
])('an unknown variable is refused with a suggestion: %s', (name, hint) => {
  const message = refusal(() => load({ env: { [name]: '8081' } }))
  expect(message).toContain(`${name}: `)
  expect(message).toContain(hint)
})

test('environment variables of other programs are ignored', () => {
  expect(() => load({ env: { PATH: '/bin', PATCHMIRRORED: '1', MY_PATCHMIRROR_X: '1' } })).not.toThrow()
})

test('the service links of Kubernetes are ignored', () => {
  const env = {
    PATCHMIRROR_SERVICE_HOST: '10.0.0.7',
    PATCHMIRROR_SERVICE_PORT: '8080',
    PATCHMIRROR_SERVICE_PORT_HTTP: '8080',
    PATCHMIRROR_PORT: 'tcp://10.0.0.7:8080',
    PATCHMIRROR_PORT_8080_TCP: 'tcp://10.0.0.7:8080',
    PATCHMIRROR_PORT_8080_TCP_PROTO: 'tcp',
    PATCHMIRROR_PORT_8080_TCP_PORT: '8080',
    PATCHMIRROR_PORT_8080_TCP_ADDR: '10.0.0.7',
    PATCHMIRROR_API_SERVICE_HOST: '10.0.0.8',
    PATCHMIRROR_API_PORT: 'tcp://10.0.0.8:80',
  }
  expect(load({ env }).config).toEqual(load().config)
})

test.each(['', '\n', '\r\n'])('a secret is read from a file without its last newline: %j', (end) => {
  const path = fileWith(PROXY + end, 'proxy')
  const { config, origins } = load({ env: { PATCHMIRROR_UPSTREAM_PROXY_FILE: path } })
  expect(config.upstream.proxy).toBe(PROXY)
  expect(origins.get('upstream.proxy')).toBe(`secret file ${path} (env PATCHMIRROR_UPSTREAM_PROXY_FILE)`)
})

test('a relative secret file counts from the working directory', () => {
  const path = fileWith(PROXY, 'proxy')
  const env = { PATCHMIRROR_UPSTREAM_PROXY_FILE: 'proxy' }
  expect(load({ env, cwd: path.replace(/\/proxy$/, '') }).config.upstream.proxy).toBe(PROXY)
})

test('a secret file that is missing, a folder or empty is named', () => {
  const message = (path: string): string => refusal(() => load({ env: { PATCHMIRROR_UPSTREAM_PROXY_FILE: path } }))
  expect(message('/nowhere/proxy')).toContain(
    'upstream.proxy (secret file /nowhere/proxy (env PATCHMIRROR_UPSTREAM_PROXY_FILE)): the file cannot be read: there is no such file: check the path',
  )
  expect(message(scratch())).toContain('cannot be read: it is a folder')
  expect(message(fileWith('\n'))).toContain('the file is empty')
  const separators = { PATCHMIRROR_WEBHOOKS_SECRETS_FILE: fileWith(' \n,\n') }
  expect(refusal(() => load({ env: separators }))).toContain('the file is empty')
})

test('a secret given both ways is refused', () => {
  const env = {
    PATCHMIRROR_UPSTREAM_PROXY: PROXY,
    PATCHMIRROR_UPSTREAM_PROXY_FILE: fileWith(PROXY),
  }
  const message = refusal(() => load({ env }))
  expect(message).toContain('both PATCHMIRROR_UPSTREAM_PROXY and PATCHMIRROR_UPSTREAM_PROXY_FILE')
  expect(message).not.toContain('hunter2')
})

test('a refused secret is not quoted, whatever its origin', () => {
  const bad = 'ftp://mirror:hunter2@proxy.example.com'
  const messages = [
    refusal(() => load({ env: { PATCHMIRROR_UPSTREAM_PROXY: bad } })),
    refusal(() => load({ env: { PATCHMIRROR_UPSTREAM_PROXY_FILE: fileWith(bad) } })),
    refusal(() => loadYaml(`upstream: { proxy: "${bad}" }`)),
    refusal(() => loadYaml('upstream: { proxy: { password: hunter2 } }')),
  ]
  for (const message of messages) {
    expect(message).toContain('upstream.proxy (')
    expect(message).toContain('the value is not')
    expect(message).not.toContain('hunter2')
  }
})

test('no message repeats a key or a secret that is given where a path is expected', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const [, body = ''] = pem.split('\n')
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(12).toString('base64')
  const likePath = `/3q5${raw.slice(4)}`
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  for (const [name, value, said] of [
    ['PATCHMIRROR_BUNDLE_SIGNING_KEYS', pem, 'is the text of a key or a certificate: give the path'],
    ['PATCHMIRROR_BUNDLE_SIGNING_KEYS', body, 'give the path of a file'],
    ['PATCHMIRROR_SERVER_KEY_FILE', pem, 'give the path of a file'],
    ['PATCHMIRROR_UPSTREAM_CA_FILE', pem, 'give the path of a file'],
    ['PATCHMIRROR_BUNDLE_TRUSTED_KEYS', pem, 'give the path of a file'],
    ['PATCHMIRROR_BUNDLE_TRUSTED_KEYS', raw, '"ed25519:" goes before it'],
    ['PATCHMIRROR_BUNDLE_TRUSTED_KEYS', likePath, '"ed25519:" goes before it'],
    ['PATCHMIRROR_WEBHOOKS_SECRETS_FILE', secret, 'may be the secret itself'],
    ['PATCHMIRROR_OSV_SCHEDULE', secret, 'not shown'],
  ] as const) {
    const message = refusal(() => load({ env: { [name]: value } }))
    expect(message).toContain(said)
    for (const hidden of [body, raw, likePath, secret, secret.slice(7)]) expect(message).not.toContain(hidden)
  }
  expect(refusal(() => load({ env: { PATCHMIRROR_SERVER_KEY_FILE: '/etc/none.pem' } }))).toContain(
    '"/etc/none.pem" cannot be read (there is no such file: check the path)',
  )
})
