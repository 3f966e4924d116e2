import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { SETTINGS } from '../../../src/config/settings.ts'
import { fileWith, load, loadYaml, refusal, scratch } from '../loading.ts'

const yamlOf = (key: string, value: unknown): string => {
  const [section = '', name = ''] = key.split('.')
  return JSON.stringify({ [section]: { [name]: value } })
}

test.each([
  ['upstream.apiRoot', 'api.example.com', 'is not a URL'],
  ['upstream.apiRoot', 'localhost:8080', 'is not an http:// or https:// URL'],
  ['upstream.apiRoot', 'ftp://api.example.com', 'is not an http:// or https:// URL'],
  ['upstream.apiRoot', 'https:api.example.com', 'is not an http:// or https:// URL'],
  ['upstream.apiRoot', 'https://api.example.com?x=1', 'has a query or a fragment'],
  ['upstream.apiRoot', 'https://api.example.com/#', 'has a query or a fragment'],
  ['upstream.apiRoot', 'https://api. example.com', 'contains white space'],
  ['upstream.apiRoot', 'https://api.example.com/v1', 'the public feeds have none'],
  ['upstream.apiRoot', 'https://api.example.com/v1/', 'the public feeds have none'],
  ['upstream.apiRoot', 'https://api.example.com/external', 'the mirror adds the path'],
  ['upstream.apiRoot', 'https://api.example.com/external/osv/all.json', 'the mirror adds the path'],
  ['upstream.apiRoot', 'https://u:p@api.example.com', 'contains a user name or password'],
  ['upstream.apiRoot', '', 'is empty'],
  ['upstream.apiRoot', 5, 'is not text'],
  ['upstream.proxy', 'socks5://proxy.example.com', 'is not an http:// or https:// URL'],
  ['upstream.proxy', 'http://proxy.example.com/path', 'has a path'],
  ['upstream.userAgent', 'line\nbreak', 'contains characters'],
  ['upstream.userAgent', 'a (nested) comment', 'contains characters'],
  ['upstream.userAgent', 'x'.repeat(201), 'is too long'],
  ['upstream.concurrency', 1.5, 'is not a whole number'],
  ['upstream.concurrency', '4', 'is text, not a number: write it without quotes'],
  ['upstream.concurrency', 'four', 'is not a number'],
  ['upstream.concurrency', true, 'is not a number'],
  ['upstream.concurrency', 0, 'is too small'],
  ['upstream.concurrency', 257, 'is too large'],
  ['upstream.maxBytes', { json: '600 MB' }, '(entry json) is too large'],
  ['upstream.maxBytes', { json: 'lots' }, '(entry json) is not a size'],
  ['upstream.maxBytes', { json: [1] }, '(entry json) is not a size'],
  ['upstream.maxBytes', { json: 1000.5 }, '(entry json) is not a whole number of bytes'],
  ['upstream.maxBytes', { list: '2 TB' }, '(entry list) is too large'],
  ['upstream.maxBytes', '4 GB', 'is not a map of names and values'],
  ['data.dir', '', 'is empty'],
  ['data.dir', 'a\0b', 'NUL'],
  ['data.dir', '~/data', 'which only a shell replaces'],
  ['log.file', '~/log', 'which only a shell replaces'],
  ['bundle.inbox', '~', 'which only a shell replaces'],
  ['server.listen', 'unix:~/pm.sock', 'which only a shell replaces'],
  ['osv.schedule', 'hourly', 'is not a cron expression'],
  ['osv.schedule', '* * * *', 'is not a cron expression'],
  ['osv.schedule', '* * * * * * *', 'is not a cron expression'],
  ['osv.schedule', '* * * * $', 'is not a cron expression'],
  ['guard.limit', 'all', 'is not a map of names and values'],
  ['guard.limit', { gone: '1% and 20' }, '(entry gone) has a name that is none of changed, removed'],
  ['guard.limit', { removed: 0.1 }, '(entry removed) is not a share from 0% to 100% and a number, such as 10% and 20'],
  ['guard.limit', { removed: '101% and 20' }, '(entry removed) is not a share'],
  ['guard.window', 7, 'is not a number of days or hours with its unit'],
  ['guard.window', '91d', 'is too long'],
  ['feeds.extraPaths', '/external/x', 'is not a list'],
  ['feeds.extraPaths', [7], '(entry 1) is not text'],
  ['feeds.extraPaths', ['/external/a', '/osv/x'], '(entry 2) does not start with /external/'],
  ['feeds.extraPaths', ['/external/a', '/external/a'], '(entry 2) is there twice'],
  ['feeds.extraPaths', ['/external/../v1/secrets'], 'is not a plain path'],
  ['feeds.extraPaths', ['/external/a?b=c'], 'is not a plain path'],
  ['feeds.extraPaths', ['/external/'], 'is not a plain path'],
  ['feeds.extraPaths', ['/external/a/'], 'is not a plain path'],
  ['feeds.extraPaths', ['/external/patch_feed'], 'collides with /external/patch_feed'],
  ['feeds.extraPaths', ['/external/globals/sys_matrix'], 'collides with /external/globals/sys_matrix'],
  ['feeds.extraPaths', ['/external/osv/all.json'], 'collides with /external/osv'],
  ['feeds.extraPaths', ['/external/osv'], 'collides with /external/osv'],
  ['log.access', 'yes', 'is not true or false'],
  ['log.access', 1, 'is not true or false'],
  ['upstream.catalogUrl', 'https://catalog.example.com/packages', 'includes /packages'],
  ['upstream.catalogUrl', 'https://u:p@catalog.example.com', 'contains a user name or password'],
  ['oauth.clientId', 'two words', 'is not one word'],
  ['oauth.authUrl', 'https://auth.example.com/oauth/token', 'includes /oauth'],
  ['upstream.vendor', 'Acme Inc', 'is not a word of small letters'],
  ['catalog.scope', 'some', 'is not one of the words allowed'],
  ['network.trusted', ['http://s3.internal'], '(entry 1) is not a host name'],
  ['network.trusted', ['s3.internal:9000'], '(entry 1) is not a host name'],
  ['network.trusted', ['10.0.0.0/33'], '(entry 1) is not a host name'],
  ['fleet.endpoint', 'https://s3.internal?bucket=x', 'has the option bucket, which is not region=NAME or pathStyle'],
  ['fleet.endpoint', 'https://u:p@s3.internal', 'contains a user name or password'],
  ['fleet.name', 'a b', 'is not one word'],
  ['catalog.patterns', ['library/python'], '(entry 1) does not have the form image:NAME'],
  ['catalog.patterns', ['!image:'], '(entry 1) does not have the form'],
  ['catalog.patterns', ['tag:x'], '(entry 1) does not have the form'],
  ['catalog.patterns', ['avr:a b'], '(entry 1) does not have the form'],
  ['identity.apiUrl', 'https://identity.example.com', 'does not end in a version'],
  ['identity.apiUrl', 'https://identity.example.com/v1/users', 'does not end in a version'],
  ['identity.tier', 'gold', 'is not one of the words allowed'],
  ['server.publicUrl', 'mirror.example.com', 'is not a URL'],
  ['server.publicUrl', 'https://mirror.example.com/?a=b', 'has a query'],
  ['server.trustProxy', ['10.0.0.0/33'], '(entry 1) is not an address or a network'],
  ['server.trustProxy', ['proxy.example.com'], '(entry 1) is not an address or a network'],
  ['server.trustProxy', ['fe80::1%e'], '(entry 1) is not an address or a network'],
  ['webhooks.endpoints', ['default=/'], 'is not a plain path'],
  ['webhooks.endpoints', ['default=hooks'], 'is not a plain path'],
  ['webhooks.endpoints', ['default=/hooks/../v1/me'], 'is not a plain path'],
  ['webhooks.endpoints', ['default=/hooks?x=1'], 'is not a plain path'],
  ['webhooks.endpoints', ['default=/v1/hooks'], 'is a path that the mirror itself answers'],
  ['webhooks.endpoints', ['default=/external/hooks'], 'is a path that the mirror itself answers'],
  ['webhooks.endpoints', ['default=/packages'], 'is a path that the mirror itself answers'],
  ['webhooks.endpoints', ['default=/osv/v1/query'], 'is a path that the mirror itself answers'],
  ['webhooks.endpoints', ['default=/-/vex/hooks'], 'is a path that the mirror itself answers'],
  ['webhooks.endpoints', ['default=/-/status'], 'is a path that the mirror itself answers'],
  ['webhooks.endpoints', ['/hooks'], '(entry 1) does not have the form NAME=/path'],
  ['webhooks.endpoints', ['a b=/hooks'], '(entry 1) does not have the form NAME=/path'],
  ['webhooks.endpoints', ['one=/v3/x'], '(entry 1) is a path that the mirror itself answers'],
  ['webhooks.secrets', [''], '(entry 1) is empty'],
  ['webhooks.secrets', ['whsec_'], 'contains only the prefix whsec_'],
  ['webhooks.secrets', ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_short'], '(entry 2) is shorter'],
  ['webhooks.secrets', ['whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'], 'is easy to guess'],
  ['webhooks.secrets', ['whsec_patchmirror-secret'], 'is easy to guess'],
  ['webhooks.secrets', ['MfKQ9r8GKYqrTw UPD8ILPZ'], 'contains a space'],
  ['webhooks.dialect', 'hex', 'is not one of the words allowed'],
  ['webhooks.types', ['io.service cr'], '(entry 1) is not an event type'],
  ['webhooks.types', ['io.{owner}.x'], '(entry 1) is not an event type'],
  ['webhooks.allowedOrigins', ['https://events.example.com'], '(entry 1) is not a DNS name'],
  ['log.level', 'INFO', 'is not one of the words allowed'],
])('%s refuses %j', (key, value, fault) => {
  const message = refusal(() => loadYaml(yamlOf(key, value)))
  expect(message).toContain(`${key} (file `)
  expect(message).toContain(fault)
  expect(message).toMatch(/\. Allowed: .+; for example .+\./)
})

test.each([
  ['upstream.apiRoot', 'http://10.0.0.1:8080/feeds//', 'http://10.0.0.1:8080/feeds'],
  ['upstream.apiRoot', 'https://api.example.com/', 'https://api.example.com'],
  ['upstream.proxy', 'http://proxy.example.com:3128/', 'http://proxy.example.com:3128/'],
  [
    'upstream.maxBytes',
    { archive: '4 GiB', list: '2 GB' },
    { json: 256_000_000, record: 32_000_000, archive: 4_294_967_296, list: 2_000_000_000 },
  ],
  ['osv.schedule', '*/30 0-5,22 * JAN-DEC MON#1', '*/30 0-5,22 * JAN-DEC MON#1'],
  ['osv.schedule', ' 0 7 * * * * ', '0 7 * * * *'],
  ['feeds.extraPaths', [], []],
  ['feeds.extraPaths', ['/external/osv_legacy', '/external/a/b.json'], ['/external/osv_legacy', '/external/a/b.json']],
  ['upstream.catalogUrl', 'https://catalog.example.com/', 'https://catalog.example.com'],
  ['oauth.audience', 'https://identity.example.com/v1', 'https://identity.example.com/v1'],
  ['catalog.patterns', ['image:library/*', '!ecosystem:debian'], ['image:library/*', '!ecosystem:debian']],
  ['identity.apiUrl', 'https://i.example.com/v2-beta/', 'https://i.example.com/v2-beta'],
  ['server.publicUrl', 'https://mirror.example.com/feeds/', 'https://mirror.example.com/feeds'],
  ['server.trustProxy', ['10.0.0.0/8', '::1', 'fd00::/8'], ['10.0.0.0/8', '::1', 'fd00::/8']],
  ['webhooks.endpoints', ['a=/-/hooks', 'b=/hooks/service'], ['a=/-/hooks', 'b=/hooks/service']],
  ['webhooks.endpoints', ['staging=/-/webhooks/staging'], ['staging=/-/webhooks/staging']],
  ['webhooks.types', ['com.example.*', 'io.{vendor}.x'], ['com.example.*', 'io.{vendor}.x']],
  ['webhooks.allowedOrigins', ['*', 'events.example.com'], ['*', 'events.example.com']],
  [
    'webhooks.secrets',
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'mirror-hook!signing*secret~2026-11-21'],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'mirror-hook!signing*secret~2026-11-21'],
  ],
  ['data.dir', '/var/lib/../lib/patchmirror', '/var/lib/patchmirror'],
])('%s takes %j', (key, value, expected) => {
  const [section = '', name = ''] = key.split('.')
  const config: Readonly<Record<string, Readonly<Record<string, unknown>>>> = loadYaml(yamlOf(key, value)).config
  expect(config[section]?.[name]).toEqual(expected)
})

test('the values of a message are quoted, shortened, and without the password of a URL', () => {
  const long = refusal(() => loadYaml(yamlOf('log.level', 'x'.repeat(500))))
  expect(long).toContain(`"${'x'.repeat(99)}…`)
  const url = refusal(() => loadYaml(yamlOf('upstream.apiRoot', 'https://u:p/hunter2@h')))
  expect(url).toContain('https://u:********@h')
  expect(url).not.toContain('hunter2')
})

test('a scheduler may pass its own parser of cron expressions', () => {
  const seen: string[] = []
  const validateCron = (expression: string): boolean => {
    seen.push(expression)
    return expression !== '99 * * * *'
  }
  load({ validateCron })
  expect(seen).toEqual(['7 * * * *', '23 3 * * *', '37 * * * *'])
  const message = refusal(() => loadYaml(yamlOf('catalog.schedule', '99 * * * *'), { validateCron }))
  expect(message).toContain('catalog.schedule')
})

const FILES = new Set([
  'bundle.signingKeys',
  'bundle.trustedKeys',
  'catalog.trustRoot',
  'upstream.caFile',
  'server.certFile',
  'server.keyFile',
  'server.linkSecretFile',
  'webhooks.certFile',
  'webhooks.keyFile',
])

test('the example of every setting is valid for it', () => {
  const context = { cwd: '/', validateCron: () => true }
  for (const { key, setting } of SETTINGS.filter(({ key }) => !FILES.has(key)))
    expect(setting.check(parse(setting.example), context), key).toHaveProperty('value')
})

test('a file that is trusted to sign has public keys or a trusted root, and no private key', () => {
  const json = (text: string): string => fileWith(text, 'root.json')
  const pem = fileWith('-----BEGIN PUBLIC KEY-----\nMII\n-----END PUBLIC KEY-----\n', 'key.pem')
  const root = json('{"certificateAuthorities":[]}')
  const valueOf = (...files: string[]) => JSON.stringify({ catalog: { trustRoot: files } })
  expect(loadYaml(valueOf(pem, root)).config.catalog.trustRoot).toEqual([pem, root])
  const faults = [
    ['/none.pem', 'cannot be read (there is no such file: check the path)'],
    [fileWith('-----BEGIN PRIVATE KEY-----\n'), 'contains a private key'],
    [fileWith('-----BEGIN CERTIFICATE-----\n'), 'contains neither a PEM public key'],
    [json('{"keys":[]}'), 'is not a trusted root of Sigstore'],
    [json('{"keys"'), 'is not valid JSON'],
  ] as const
  for (const [path, fault] of faults) expect(refusal(() => loadYaml(valueOf(path)))).toContain(fault)
  for (const signatures of ['warn', 'enforce']) {
    const alone = JSON.stringify({ catalog: { signatures } })
    expect(refusal(() => loadYaml(alone))).toContain('catalog.trustRoot names nothing')
    loadYaml(JSON.stringify({ catalog: { signatures, trustRoot: [pem] } }))
  }
  const signers = JSON.stringify({ catalog: { signers: ['https://issuer.example.com'] } })
  expect(refusal(() => loadYaml(signers))).toContain('is not an issuer and a subject')
})

test('a certificate file must exist and contain a certificate, and its path becomes absolute', () => {
  const pem = fileWith('-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n', 'ca.pem')
  const cwd = pem.replace(/\/ca\.pem$/, '')
  expect(loadYaml(yamlOf('upstream.caFile', 'ca.pem'), { cwd }).config.upstream.caFile).toBe(pem)
  const faults = [
    [`${cwd}/none.pem`, 'cannot be read (there is no such file: check the path)'],
    [scratch(), 'cannot be read (it is a folder: name a file)'],
    [fileWith('-----BEGIN PRIVATE KEY-----\n'), 'contains no PEM certificate'],
  ] as const
  for (const [path, fault] of faults)
    expect(refusal(() => loadYaml(yamlOf('upstream.caFile', path)))).toContain(`"${path}" ${fault}`)
})
