import { parseArgs } from 'node:util'
import { FAULT_PARAMETERS } from './faults/fault.ts'
import { HOSTILE_KINDS } from './faults/hostile-zip.ts'
import { listKinds } from './faults/parameters.ts'
import { DELIVERY_PARAMETERS } from './service/events/delivery-faults.ts'
import { type Sandbox, type SandboxOptions, createSandbox } from './server.ts'
import { SANDBOX_CLIENT, SANDBOX_KEYS, SANDBOX_TOKEN } from './service/credentials.ts'
import type { ServiceOptions } from './service/options.ts'
import { type Shape, type ShapeChanges, SHAPE_NAMES, shaped } from './service/shapes/shape.ts'
import { DIALECTS } from './service/events/dialect.ts'

/** The page of `--help`: each option, its default and its purpose. */
const USAGE = `usage: npm run sandbox -- [options]

A stand-in for the service, for trials: generated advisories, images and packages that change on request.
It stores everything in memory. At start it prints the URLs, the credentials and the calls that control it.

Where
  --host H             address to listen on (127.0.0.1)
  --port N             port of the public feeds and of /v1 and /v3 (8090; 0: any free one). The package catalog, the
                       artifacts and the identity surface listen on the three ports after it
What it has
  --records N          OSV records (500)
  --osv-zip FILE       records of an archive instead, one JSON document each member
  --osv-index FILE     the index that belongs to --osv-zip; made from its records when not given
  --malformed          every sixth record is without its schema_version, so that scanners drop it
  --tags N             image tags, --packages N and --tickets N likewise
  --large-sboms N      number of SBOMs of 20 MB (0)
  --seed N             another number, other data; the same number, the same data (1)
How it behaves
  --live SECONDS       interval between changes (0: only on request)
  --no-ranges          it answers Range requests with the whole archive
  --shape NAME         how it reads what the contract leaves open: wire, other, link, items, nested, camel,
                       jsonapi, hal, headers or keyed (wire)
  --vary JSON          other forms of some parts of the shape: '{"records":{"ids":"integer"},"lists":{"largestPage":3}}',
                       '{"index":"ids"}' (list, ids, objects, map, keyed, lines, groups), '{"feed":"keyed","matrix":"array"}',
                       '{"records":{"within":"attributes"}}' (nothing, attributes, spec, noun), '{"lists":{"links":{"at":["links"],"form":"hal"}}}'
                       '{"artifacts":{"around":"json-api"},"http":{"refused":["/v1/me"]}}'
                       Lists by page number: '{"lists":{"next":{"form":"page","parameter":"page","first":1}}}'; other
                       forms: {"form":"header","name":"X-Next-Cursor","parameter":"cursor"}, {"form":"range",
                       "parameter":"offset"}, {"form":"none","parameter":""}, {"form":"cursor","at":["resume_key"],
                       "end":"absent","parameter":"resume_key","own":true}; "largestPage":25,"ignoresLimit":true beside it
                       makes pages of 25, whatever limit asks for
  --dialect NAME       how deliveries are signed: standard or vendor (standard)
  --webhook-secret S   the secret of each new webhook subscription (a random one each)
  --keep-requests N    requests that it remembers for /-/sandbox/requests (20000)
  --help               this page

Faults, for POST /-/sandbox/fault '{"path":"/external/osv/*.json","fault":{"kind":"slow","bytesPerSecond":1000}}'; beside
the fault may be "times" (until cleared), "after" (0 requests are spared) and "method". Parameters, in [] the optional ones:
${listKinds(FAULT_PARAMETERS)}
  archive is one of: ${HOSTILE_KINDS.join(', ').replaceAll(/(.{70,100},) /g, '$1\n    ')}

Faults of deliveries, for POST /-/sandbox/delivery-fault '{"fault":{"kind":"delayed","ms":5000}}', with "times" (1) and "after" (0):
${listKinds(DELIVERY_PARAMETERS)}
`

interface Command {
  options: SandboxOptions
  /** Milliseconds between changes; 0 for a feed that does not change. */
  liveMs: number
}

/** Reads the command line, null when it asks for help; throws an Error whose message names the mistake. */
function readArguments(args: string[]): Command | null {
  const { values } = parseArgs({
    args,
    strict: true,
    options: {
      port: { type: 'string' },
      host: { type: 'string', default: '127.0.0.1' },
      records: { type: 'string' },
      seed: { type: 'string' },
      'osv-zip': { type: 'string' },
      'osv-index': { type: 'string' },
      live: { type: 'string' },
      malformed: { type: 'boolean', default: false },
      'no-ranges': { type: 'boolean', default: false },
      tags: { type: 'string' },
      packages: { type: 'string' },
      tickets: { type: 'string' },
      'large-sboms': { type: 'string' },
      'keep-requests': { type: 'string' },
      dialect: { type: 'string' },
      'webhook-secret': { type: 'string' },
      shape: { type: 'string', default: 'wire' },
      vary: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const osvZip = values['osv-zip']
  const osvIndex = values['osv-index']
  if (osvIndex !== undefined && osvZip === undefined) {
    throw new Error('--osv-index belongs to an archive: give --osv-zip too')
  }
  const port = readNumber('--port', values.port ?? '8090', 0, 65_532)
  const options: SandboxOptions = {
    host: values.host,
    port,
    records: readNumber('--records', values.records ?? '500', 0, 1_000_000),
    seed: readNumber('--seed', values.seed ?? '1', 0, 0xffffffff),
    malformed: values.malformed,
    ranges: !values['no-ranges'],
    keepRequests: readNumber('--keep-requests', values['keep-requests'] ?? '20000', 0, 1_000_000),
    service: readService(values, port),
    ...(osvZip === undefined ? {} : { osvZip }),
    ...(osvIndex === undefined ? {} : { osvIndex }),
  }
  return { options, liveMs: readNumber('--live', values.live ?? '0', 0, 86_400) * 1000 }
}

/** Flags with a number of generated items. */
const COUNTS = {
  tags: 'tags',
  packages: 'packages',
  tickets: 'tickets',
  'large-sboms': 'largeSboms',
} as const

type GivenService = Partial<Record<keyof typeof COUNTS | 'dialect' | 'webhook-secret', string | undefined>> & {
  shape: string
  vary?: string | undefined
}

/** The counts that were given, and the ports after the sandbox's own; free ones when that is free. */
function readService(given: GivenService, port: number): ServiceOptions {
  const options: ServiceOptions = { shape: readShape(given.shape, given.vary ?? '{}') }
  if (port > 0) options.ports = { catalog: port + 1, artifacts: port + 2, identity: port + 3 }
  const { dialect: named, 'webhook-secret': webhookSecret } = given
  const dialect = DIALECTS.find((one) => one === named)
  if (named !== undefined && dialect === undefined)
    throw new Error(`--dialect must be one of ${DIALECTS.join(', ')}, not ${named}`)
  if (dialect !== undefined) options.dialect = dialect
  if (webhookSecret !== undefined) options.webhookSecret = webhookSecret
  for (const [flag, kind] of Object.entries(COUNTS)) {
    const text = given[flag as keyof typeof COUNTS] // the table's own keys
    if (text !== undefined) options[kind] = readNumber(`--${flag}`, text, 0, 1_000_000)
  }
  return options
}

/** A named shape with the changes of a JSON object, such as `{"records":{"ids":"integer"}}`. */
function readShape(text: string, changes: string): Shape {
  const name = SHAPE_NAMES.find((one) => one === text)
  if (name === undefined) throw new Error(`--shape must be one of ${SHAPE_NAMES.join(', ')}, not ${text}`)
  try {
    return shaped(name, JSON.parse(changes) as ShapeChanges)
  } catch (error) {
    throw new Error('--vary must be a JSON object', { cause: error })
  }
}

function readNumber(name: string, text: string, from: number, to: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= from && value <= to) return value
  throw new Error(`${name} must be a whole number from ${from} to ${to}, not ${text}`)
}

function describe(sandbox: Sandbox, liveMs: number): string {
  const { url, feed, catalogUrl, artifactUrl, identityUrl, authUrl } = sandbox
  return [
    `sandbox of ${feed.ids().length} records at ${url}/external/osv/all.json`,
    `  remediation ${url}/v1, settings ${url}/v3, package catalog ${catalogUrl}, identity ${identityUrl}`,
    `  API keys ${Object.values(SANDBOX_KEYS).join(', ')}; bearer token ${SANDBOX_TOKEN}`,
    `  OAuth client ${SANDBOX_CLIENT.id} with ${SANDBOX_CLIENT.secret} at ${authUrl}/oauth/token`,
    `  curl -u ${SANDBOX_KEYS.readonly}: '${url}/v1/patches?limit=2'`,
    'settings of a mirror of it, before "npm run patchmirror -- sync" or "serve":',
    `  export PATCHMIRROR_UPSTREAM_API_ROOT=${url} PATCHMIRROR_UPSTREAM_API_KEY=${SANDBOX_KEYS.readonly}`,
    `  export PATCHMIRROR_UPSTREAM_CATALOG_URL=${catalogUrl} PATCHMIRROR_NETWORK_TRUSTED=${new URL(artifactUrl).hostname}`,
    liveMs > 0 ? `it changes every ${liveMs / 1000} s` : 'it changes only on request:',
    `  curl -X POST '${url}/-/sandbox/change?n=5'   (add, change, change-silently, withdraw, lower-fixes, empty, remove, move-backwards, touch-feeds)`,
    `  curl -X POST '${url}/-/sandbox/add-tag?n=2'   (add-tag, add-package, add-ticket, change-tag, change-package, change-ticket)`,
    `  curl ${url}/-/sandbox/deliveries ; curl -X POST ${url}/-/sandbox/delivery-fault -d '{"fault":{"kind":"early","ms":5000}}'`,
    `  curl -X POST ${url}/-/sandbox/fault -d '{"path":"/external/osv/*.json","fault":{"kind":"status","status":503},"times":2}'`,
    `  curl -X DELETE ${url}/-/sandbox/fault`,
    `  curl ${url}/-/sandbox/state ; curl ${url}/-/sandbox/requests`,
    '',
  ].join('\n')
}

async function main(args: string[]): Promise<void> {
  const command = readArguments(args)
  if (command === null) {
    process.stdout.write(USAGE)
    return
  }
  const { options, liveMs } = command
  const sandbox = await createSandbox(options)
  const stop = (): void => {
    void sandbox.close().then(() => {
      if (process.connected) process.disconnect()
    })
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect']) process.once(signal, stop)
  if (liveMs > 0) {
    sandbox.feed.live(liveMs)
    setInterval(() => sandbox.service.addTag(), liveMs).unref()
  }
  process.stdout.write(describe(sandbox, liveMs))
  const { url, catalogUrl, artifactUrl, identityUrl, authUrl } = sandbox
  process.send?.({ url, catalogUrl, artifactUrl, identityUrl, authUrl })
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`sandbox: ${message}\n(--help lists every option)\n`)
  process.exitCode = 2
}
