import { parseArgs } from 'node:util'
import { type Sandbox, type SandboxOptions, createSandbox } from './server.ts'

const USAGE = `usage: node src/sandbox/main.ts [--port N] [--host H] [--records N] [--seed N]
         [--osv-zip FILE] [--osv-index FILE] [--live SECONDS] [--no-ranges]
`

interface Command {
  options: SandboxOptions
  /** Milliseconds between changes; 0 for a feed that stands still. */
  liveMs: number
}

/** Reads the command line; throws an Error whose message says what is wrong with it. */
function readArguments(args: string[]): Command {
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
      'no-ranges': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) throw new Error('')
  const osvZip = values['osv-zip']
  const osvIndex = values['osv-index']
  if (osvIndex !== undefined && osvZip === undefined) {
    throw new Error('--osv-index belongs to an archive: give --osv-zip too')
  }
  const options: SandboxOptions = {
    host: values.host,
    port: readNumber('--port', values.port ?? '8090', 0, 65_535),
    records: readNumber('--records', values.records ?? '500', 0, 1_000_000),
    seed: readNumber('--seed', values.seed ?? '1', 0, 0xffffffff),
    ranges: !values['no-ranges'],
    ...(osvZip === undefined ? {} : { osvZip }),
    ...(osvIndex === undefined ? {} : { osvIndex }),
  }
  return { options, liveMs: readNumber('--live', values.live ?? '0', 0, 86_400) * 1000 }
}

function readNumber(name: string, text: string, from: number, to: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= from && value <= to) return value
  throw new Error(`${name} must be a whole number from ${from} to ${to}, not ${text}`)
}

function describe({ url, feed }: Sandbox, liveMs: number): string {
  return [
    `sandbox of ${feed.ids().length} records at ${url}/external/osv/all.json`,
    liveMs > 0 ? `it changes every ${liveMs / 1000} s` : 'it stands still until told to change:',
    `  curl -X POST '${url}/-/sandbox/change?n=5'   (add, change, change-silently, withdraw, remove, move-backwards, touch-feeds)`,
    `  curl -X POST ${url}/-/sandbox/fault -d '{"path":"/external/osv/*.json","fault":{"kind":"status","status":503},"times":2}'`,
    `  curl -X DELETE ${url}/-/sandbox/fault`,
    `  curl ${url}/-/sandbox/state ; curl ${url}/-/sandbox/requests`,
    '',
  ].join('\n')
}

async function main(args: string[]): Promise<void> {
  const { options, liveMs } = readArguments(args)
  const sandbox = await createSandbox(options)
  const stop = (): void => {
    void sandbox.close().then(() => {
      if (process.connected) process.disconnect()
    })
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  process.once('disconnect', stop)
  if (liveMs > 0) sandbox.feed.live(liveMs)
  process.stdout.write(describe(sandbox, liveMs))
  process.send?.({ url: sandbox.url })
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(message === '' ? USAGE : `sandbox: ${message}\n${USAGE}`)
  process.exitCode = message === '' ? 0 : 2
}
