import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Sandbox, type SandboxOptions, createSandbox } from '../../src/sandbox/server.ts'
import { type Finished, type Started, run, start } from './command.ts'
import { QUICK } from './mirror.ts'

/** A daemon that serves: where, and all that it had said by then. */
export interface Served extends Started {
  url: string
  text: string
}

/** The program as its users run it: a stand-in service, a folder, an environment, and daemons that end with the test. */
export interface World {
  sandbox: Sandbox
  dir: string
  /** Of every command; a test may change it. */
  env: Record<string, string>
  /** Starts a daemon; `more` is for this one alone. */
  serve(more?: Record<string, string>): Promise<Served>
  /** Runs a command to its end. */
  patchmirror(...args: string[]): Promise<Finished>
  close(): Promise<void>
}

/** Opens a world; `envOf` adds what depends on the stand-in. */
export async function openWorld(
  options: SandboxOptions,
  envOf: (sandbox: Sandbox) => Record<string, string> = () => ({}),
): Promise<World> {
  const sandbox = await createSandbox(options)
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-world-'))
  const started: Started[] = []
  const world: World = {
    sandbox,
    dir,
    env: {
      ...QUICK,
      PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
      PATCHMIRROR_DATA_DIR: join(dir, 'data'),
      PATCHMIRROR_SERVER_PORT: '0',
      ...envOf(sandbox),
    },
    async serve(more = {}) {
      const daemon = start(['serve'], { ...world.env, ...more }, dir)
      started.push(daemon)
      const text = await daemon.said(/"msg":"serving http[^"]+"/)
      return { ...daemon, url: /serving (http[^"]+)"/.exec(text)?.[1] ?? '', text }
    },
    patchmirror: (...args) => run(args, world.env, dir),
    async close() {
      for (const { child, finished } of started) {
        child.kill('SIGKILL')
        await finished
      }
      await sandbox.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
  return world
}
