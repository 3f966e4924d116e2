import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { loadQuick } from './limits.ts'
import { type Agent, createAgent } from '../../src/daemon/agent.ts'
import type { SourceName } from '../../src/base/domain/sources.ts'
import { type Sandbox, type SandboxOptions, createSandbox } from '../sandbox/server.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import { type Finished, type Started, run, start } from './command.ts'
import { QUICK } from './mirror.ts'
import { FEATURES } from '../../src/features.ts'

/** A daemon that serves: where, and all that it had said by then. */
export interface Served extends Started {
  url: string
  text: string
}

/** A daemon in the test's own process, with its threads, locks and port. */
export interface Hosted {
  url: string
  agent: Agent
  /** Resolves when such a line is in the log, at once when it is there already. */
  said(pattern: RegExp): Promise<string>
  /** The next run of a source to end, from when this is called. */
  next(source: SourceName): Promise<Run>
  close(): Promise<void>
}

/** The program as its users run it: a stand-in service, a folder, an environment, and daemons that end with the test. */
export interface World {
  sandbox: Sandbox
  dir: string
  /** The data folder of `env`. */
  data: string
  /** Of every command; a test may change it. */
  env: Record<string, string>
  /** Starts a daemon in a process of its own, for tests of the process; `more` is for this one alone. */
  serve(more?: Record<string, string>): Promise<Served>
  /** Starts a daemon in this process, which takes a third of the time; `more` is for this one alone. */
  host(more?: Record<string, string>, offline?: boolean): Promise<Hosted>
  /** Runs a command to its end. */
  patchmirror(...args: string[]): Promise<Finished>
  close(): Promise<void>
}

/** Opens a world; `envOf` adds what depends on the stand-in, `command` runs its commands. */
export async function openWorld(
  options: SandboxOptions,
  envOf: (sandbox: Sandbox) => Record<string, string> = () => ({}),
  command: typeof run = run,
): Promise<World> {
  const sandbox = await createSandbox(options)
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-world-'))
  const data = join(dir, 'data')
  const ends: (() => Promise<unknown>)[] = []
  const world: World = {
    sandbox,
    dir,
    data,
    env: {
      ...QUICK,
      PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
      PATCHMIRROR_DATA_DIR: data,
      PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
      ...envOf(sandbox),
    },
    async serve(more = {}) {
      const daemon = start(['serve'], { ...world.env, ...more }, dir)
      ends.push(() => {
        daemon.child.kill('SIGKILL')
        return daemon.finished
      })
      const text = await daemon.said(/"msg":"serving http[^"]+"/)
      return { ...daemon, url: /serving (http[^"]+)"/.exec(text)?.[1] ?? '', text }
    },
    async host(more = {}, offline = false) {
      const daemon = await host({ ...world.env, ...more }, dir, offline)
      ends.push(() => daemon.close())
      return daemon
    },
    patchmirror: (...args) => command(args, world.env, dir),
    async close() {
      for (const end of ends.reverse()) await end()
      await sandbox.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
  return world
}

async function host(env: Record<string, string>, cwd: string, offline: boolean): Promise<Hosted> {
  const { config } = loadQuick({ env, cwd })
  const looks = new Set<() => void>()
  let text = ''
  const reports: Run[] = []
  const look = (): void => looks.forEach((one) => one())
  const write = (line: string): void => {
    text += line
    look()
  }
  const onEnded = (report: Run): void => {
    reports.push(report)
    look()
  }
  const log = pino({ base: null, level: 'info' }, { write })
  const agent = createAgent({ features: FEATURES, config, version: 'test', log, offline, onEnded })
  const { url } = await agent.start()
  let ended: Promise<void> | null = null
  const until = <T>(find: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const one = (): void => {
        const found = find()
        if (found === undefined) return
        looks.delete(one)
        resolve(found)
      }
      looks.add(one)
      one()
    })
  return {
    url,
    agent,
    said: (pattern) => until(() => (pattern.test(text) ? text : undefined)),
    next(source) {
      const before = reports.length
      return until(() => reports.slice(before).find((report) => report.source === source))
    },
    close: () => (ended ??= agent.close()),
  }
}
