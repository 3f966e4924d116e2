import { createServer } from 'node:net'
import { constants } from 'node:os'
import { closeSync, openSync, rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { counted } from '../../src/base/text.ts'
import { createAgent } from '../../src/daemon/agent.ts'
import { FEATURES } from '../../src/features.ts'
import { createProgress } from '../../src/cli/progress.ts'
import { STOPPING, isServed, print } from '../../src/cli/context.ts'
import { readLocalKey } from '../../src/store/local-key.ts'
import { describe, runsExitCode } from '../../src/cli/mirror/sync.ts'
import { loadQuick } from '../support/limits.ts'
import { MirrorError, exitCode, messageOf } from '../../src/base/errors.ts'
import { createLog } from '../../src/base/log.ts'
import { SANDBOX_KEYS } from './service/credentials.ts'
import { type Sandbox, createSandbox } from './server.ts'
import { activeSources } from '../../src/base/domain/sources.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import { VERSION } from '../../src/base/version.ts'

const USAGE = `npm run demo -- [--osv-zip FILE] [--records N] [--once]

Starts a stand-in for the service and a mirror of it, both on loopback, and syncs.
  --osv-zip FILE  let the stand-in serve this OSV archive (flat {id}.json members)
  --records N     otherwise: how many records it makes up (default 2000)
  --once          exit after the first sync`

const FOLDER = 'data/demo'

const PORT = 8080

interface DemoOptions {
  osvZip: string | undefined
  records: number
  once: boolean
}

function readOptions(): DemoOptions | null {
  const { values } = parseArgs({
    options: {
      'osv-zip': { type: 'string' },
      records: { type: 'string', default: '2000' },
      once: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const records = Number(values.records)
  if (!Number.isSafeInteger(records) || records < 1)
    throw new MirrorError('usage', `--records ${values.records}: not a count`)
  return values.help ? null : { osvZip: values['osv-zip'], records, once: values.once }
}

async function demo({ osvZip, records, once }: DemoOptions): Promise<number> {
  const folder = isServed(FOLDER) ? `${FOLDER}-${process.pid}` : FOLDER // another demo may run in it
  rmSync(folder, { recursive: true, force: true })
  const sandbox = await createSandbox(osvZip === undefined ? { records } : { osvZip })
  print(`the stand-in for the service listens on ${sandbox.url}, with ${counted(sandbox.feed.ids().length, 'record')}`)
  const display = createProgress(false)
  const env = await environment(sandbox, folder)
  const { config } = loadQuick({
    env,
    cwd: process.cwd(),
    requireUpstream: true,
  })
  const first = createFirstRuns(activeSources(config).length)
  let { show } = display
  const agent = createAgent({
    features: FEATURES,
    config,
    version: VERSION,
    log: createLog({ ...config.log, level: 'warn' }),
    onProgress: (progress) => show(progress),
    onEnded: first.add,
  })
  const ended = signalled()
  try {
    const { url } = await agent.start()
    print(`the mirror, in a browser: ${url}/`)
    const reports = await Promise.race([first.done, ended])
    show = () => undefined // a bar drawn after the end would keep the process alive
    display.finish()
    if (typeof reports === 'string') return once ? 128 + constants.signals[reports] : 0
    printGuide({ url, reports, sandbox, once, key: readLocalKey(config.data.dir) ?? '' })
    if (once) return runsExitCode(reports)
    print(
      `\nboth keep running: Ctrl-C ends them. Let the feed live: curl -X POST '${sandbox.url}/-/sandbox/change?n=5'`,
    )
    print(`and see it arrive: ${assignments(env)} npm run patchmirror -- sync`)
    await ended
    return 0
  } finally {
    await agent.close()
    await sandbox.close()
  }
}

/** The demo's own settings; the user's environment does not reach in. */
async function environment(sandbox: Sandbox, folder: string): Promise<Record<string, string>> {
  return {
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.readonly,
    PATCHMIRROR_UPSTREAM_CATALOG_URL: sandbox.catalogUrl,
    PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.0/8,localhost', // the stand-in keeps its documents on loopback
    PATCHMIRROR_DATA_DIR: folder,
    PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${(await isFree(PORT)) ? PORT : 0}`,
  }
}

/** The settings for another command on the same mirror; without one, such as the package catalog, it would remove what it gave. */
function assignments(env: Readonly<Record<string, string>>): string {
  const settings = Object.entries(env).filter(([name]) => name !== 'PATCHMIRROR_SERVER_LISTEN')
  return settings.map(([name, value]) => `${name}=${value}`).join(' ')
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

/** Collects the first run of each source. */
function createFirstRuns(sources: number): {
  add: (report: Run) => void
  done: Promise<Run[]>
} {
  const reports = new Map<string, Run>()
  const { promise, resolve } = Promise.withResolvers<Run[]>()
  return {
    add(report) {
      if (!reports.has(report.source)) reports.set(report.source, report)
      if (reports.size === sources) resolve([...reports.values()])
    },
    done: promise,
  }
}

interface DemoFacts {
  readonly url: string
  readonly reports: readonly Run[]
  readonly sandbox: Sandbox
  readonly once: boolean
  /** Key for the private paths of this mirror, which only stores generated data. */
  readonly key: string
}

function printGuide({ url, reports, sandbox, once, key }: DemoFacts): void {
  print('')
  for (const report of reports) print(describe(report))
  const id = sandbox.feed.ids().find((candidate) => /^[\w.-]+$/.test(candidate)) ?? ''
  const tag = subscribedTag(sandbox)
  print(`\nthe mirror ${once ? 'served' : 'serves'} ${url}; ${once ? 'without --once you could try' : 'try'}:
  ${url}/  in a browser; private pages take ${key} as user name, without password
  curl ${url}/external/osv/${id}.json
  curl -o all.zip ${url}/external/osv/all.zip
  curl -u ${key}: '${url}/v1/patches?ecosystem=debian&severities=critical&ticket_statuses=open'
  curl -u ${key}: ${url}/v1/tags/${tag}/vex
  curl -u ${key}: '${url}/-/tags/findings?tag=${tag}'
  curl ${url}/-/status`)
}

/** A tag that the stand-in's account subscribes to. */
function subscribedTag({ service }: Sandbox): string {
  for (const id of service.ids('subscriptions')) {
    const tag = service.read('subscriptions', id)['service_registry_tag_id']
    if (typeof tag === 'string') return tag
  }
  return service.ids('tags')[0] ?? ''
}

/** Resolves with a signal that ends the demo. SIGHUP does where its terminal was closed; else it is `patchmirror config --reload`. */
function signalled(): Promise<NodeJS.Signals> {
  const hadTerminal = hasTerminal()
  return new Promise((resolve) => {
    for (const signal of STOPPING) if (signal !== 'SIGHUP') process.once(signal, resolve)
    process.on('SIGHUP', () => {
      if (hadTerminal && !hasTerminal()) resolve('SIGHUP')
      else print('SIGHUP: the demo has settings of its own, which stay as they are')
    })
  })
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false // ENXIO: this process has no terminal, or it was closed
  }
}

// A terminal that was closed (EIO) and a reader that is gone (EPIPE) take no more output; SIGHUP ends the demo where it is due.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EIO' && error.code !== 'EPIPE') throw error
  })

process.umask(0o077) // what the mirror creates is for its own user alone
try {
  const options = readOptions()
  if (options === null) print(USAGE)
  else process.exitCode = await demo(options)
} catch (error) {
  // What parseArgs refuses is a TypeError; an archive that cannot be served is named by the stand-in.
  const usage = error instanceof TypeError
  process.stderr.write(`demo: ${messageOf(error)}\n${usage ? `\n${USAGE}\n` : ''}`)
  process.exitCode = usage ? 2 : exitCode(error)
}
