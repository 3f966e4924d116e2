import { credentialText, localKey, signingSecret, webhookSecrets } from './kinds/keys.ts'
import { bytes } from './kinds/bytes.ts'
import { signerIdentity, trustFile } from './kinds/trust.ts'
import { hostAndPort, listenAddress } from './kinds/listen.ts'
import { relayTarget } from './kinds/relay-targets.ts'
import { maxAge, staleAction } from './sections/ages.ts'
import { maxBytes } from './sections/upstream.ts'
import { EXCHANGE } from './sections/exchange.ts'
import { GUARD } from './sections/guard.ts'
import { type ValueOf, choice, flag, integerSetting, list, nullable, number, secret } from './kinds/base.ts'
import {
  certificateFile,
  cronExpression,
  directory,
  externalPath,
  network,
  ecosystemVendor,
  filePath,
  identifier,
  osvScopeEntry,
  registryPlace,
  scopePattern,
  trustedHost,
  vendorName,
} from './kinds/names.ts'
import { apiRoot, authUrl, catalogUrl, comment, identityUrl, proxyUrl, publicUrl, purgeUrl } from './kinds/urls.ts'
import {
  dialectChoice,
  namedEndpoint,
  linkSecretFile,
  privateKeyFile,
  senderOrigin,
  typePattern,
} from './kinds/webhooks.ts'

/**
 * Every setting, once: its type, its check and its description. Names, environment variables and the
 * Config type follow from this table; the defaults and their reasons are in config/default.yaml.
 */
export const SCHEMA = {
  upstream: {
    apiRoot: nullable(apiRoot()),
    catalogUrl: nullable(catalogUrl()),
    apiKey: secret(nullable(credentialText('an API key', 'sk_4f9b1c'))),
    token: secret(nullable(credentialText('an access token', 'eyJhbGciOi'))),
    vendor: vendorName(),
    proxy: secret(nullable(proxyUrl())),
    caFile: nullable(certificateFile()),
    userAgent: nullable(comment()),
    concurrency: integerSetting({ min: 1, max: 256, example: 16 }),
    maxBytes: maxBytes(),
  },
  oauth: {
    clientId: nullable(identifier()),
    clientSecret: secret(nullable(credentialText('a client secret', '8c1d7e'))),
    authUrl: nullable(authUrl()),
    audience: nullable(identifier()),
  },
  network: { trusted: list(trustedHost()) },
  data: {
    dir: directory(),
    historyDays: integerSetting({ min: 1, max: 36_500, example: 90 }),
  },
  osv: {
    schedule: cronExpression('7 * * * *'),
    reconcileSchedule: cronExpression('23 3 * * *'),
    scope: list(osvScopeEntry()),
  },
  ...GUARD,
  feeds: {
    extraPaths: list(externalPath()),
  },
  catalog: {
    scope: choice(['subscribed', 'all'], 'subscribed'),
    patterns: list(scopePattern()),
    personalData: list(choice(['apiKeys', 'users'], 'apiKeys')),
    sendCredential: flag(false),
    schedule: cronExpression('37 * * * *'),
    reconcileHours: number({ min: 0.01, max: 87_600, example: 24 }),
    signatures: nullable(choice(['off', 'warn', 'enforce'], 'warn')),
    trustRoot: list(trustFile()),
    signers: list(signerIdentity()),
  },
  identity: {
    apiUrl: nullable(identityUrl()),
    apiKey: secret(nullable(credentialText('an API key or access token', 'sk_4f9b1c'))),
    tier: choice(['free', 'standard', 'enterprise'], 'standard'),
  },
  sync: {
    maxAgeHours: maxAge(),
  },
  server: {
    listen: listenAddress(),
    certFile: nullable(certificateFile()),
    keyFile: nullable(privateKeyFile()),
    keys: secret(list(localKey())),
    linkSecretFile: nullable(linkSecretFile()),
    openLoopback: flag(false),
    publicUrl: nullable(publicUrl()),
    trustProxy: list(network()),
    cacheBytes: bytes({ min: '0 B', max: '1 TB', example: '64 MB' }),
    keepAliveSeconds: integerSetting({ min: 1, max: 86_400, example: 75 }),
    maxConnections: integerSetting({ min: 1, max: 1_000_000, example: 4096 }),
    maxConnectionsPerAddress: integerSetting({ min: 0, max: 1_000_000, example: 64 }),
    strictParameters: flag(true),
    staleAction: staleAction(),
  },
  webhooks: {
    endpoints: list(namedEndpoint()),
    secrets: secret(webhookSecrets()),
    dialect: dialectChoice(),
    types: list(typePattern()),
    listen: nullable(hostAndPort()),
    certFile: nullable(certificateFile()),
    keyFile: nullable(privateKeyFile()),
    allowedOrigins: list(senderOrigin()),
  },
  relay: {
    targets: secret(list(relayTarget())),
    secret: secret(nullable(signingSecret())),
    events: list(choice(['webhook', 'snapshot', 'findings'], 'snapshot')),
  },
  edge: {
    maxAgeSeconds: integerSetting({ min: 0, max: 31_536_000, example: 3600 }),
    tagHeader: choice(['Cache-Tag', 'xkey', 'Surrogate-Key', 'none'], 'xkey'),
    purge: secret(list(purgeUrl())),
  },
  views: {
    serve: list(choice(['bucket', 'derived', 'query', 'vex', 'findings'], 'bucket')),
    vendors: list(ecosystemVendor()),
  },
  images: { registry: nullable(registryPlace()) },
  ...EXCHANGE,
  log: {
    level: choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
    format: choice(['auto', 'json', 'pretty'], 'auto'),
    access: flag(false),
    file: nullable(filePath('/var/log/patchmirror/patchmirror.log')),
  },
}

type Section<S> = { readonly [Key in keyof S]: ValueOf<S[Key]> }

/** Checked values of all settings: paths absolute, sizes in bytes. Units are in the names or in the values. */
export type Values = { readonly [Name in keyof typeof SCHEMA]: Section<(typeof SCHEMA)[Name]> }
