import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openPinnedReads } from '../../src/store/reads.ts'
import type { Sandbox } from '../sandbox/server.ts'
import { COMPILED } from '../support/command.ts'
import { QUICK } from '../support/mirror.ts'
import { disagreements, verify } from './fixtures.ts'

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))

/** How a child is started. */
export interface ChildOptions {
  kind?: 'sync' | 'reconcile'
  full?: boolean
  source?: 'osv' | 'catalog'
  uid?: number
  env?: Record<string, string>
  /** Where the child stops, to be killed there: what it says in a line there, and how often it does so before. */
  halt?: { at: string; nth: number }
}

/** Starts a run in a process of its own. */
export function startChild(sandbox: Sandbox, dir: string, options: ChildOptions = {}): ChildProcess {
  const env = {
    ...QUICK,
    ...options.env,
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_DATA_DIR: dir,
    NODE_NO_WARNINGS: '1',
    NODE_COMPILE_CACHE: COMPILED,
  }
  const { kind = 'sync', full = false, source = 'osv', halt } = options
  const place = halt === undefined ? [] : [halt.at, String(halt.nth)]
  const args = [CHILD, kind, full ? 'full' : '-', source, ...place]
  const uid = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }
  return spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'], ...uid })
}

/** Runs a child to its end; the lines it said. */
export async function runChild(sandbox: Sandbox, dir: string, options: ChildOptions = {}): Promise<string[]> {
  const child = startChild(sandbox, dir, options)
  const ended = once(child, 'close')
  const lines = await linesOf(child)
  await ended
  return lines
}

/**
 * Starts a run and kills it -9 when it has said `phase` for the n-th time; false when it ended before that. The child waits
 * there, so that a slow machine does not find it gone; with `running` it goes on, and is killed somewhere behind that place.
 */
export async function killAt(
  sandbox: Sandbox,
  dir: string,
  phase: string,
  nth: number,
  { running = false, ...options }: ChildOptions & { running?: boolean } = {},
): Promise<boolean> {
  const halt = running ? {} : { halt: { at: phase, nth } }
  const child = startChild(sandbox, dir, { ...options, ...halt })
  const ended = once(child, 'close')
  let said = 0
  let killed = false
  await linesOf(child, (line) => {
    if (line === phase && ++said === nth) killed = child.kill('SIGKILL')
  })
  await ended
  return killed
}

async function linesOf(child: ChildProcess, visit: (line: string) => void = () => undefined): Promise<string[]> {
  const lines: string[] = []
  if (child.stdout === null) throw new Error('the child has no output')
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    visit(line)
  }
  return lines
}

/** Returns what a reader finds wrong in the folder of a killed process; it is opened read-only, so nothing is repaired. */
export async function findingsAfterKill(dir: string): Promise<string[]> {
  const reads = openPinnedReads(dir)
  if (reads === null) return []
  try {
    const found = disagreements(reads.pinned, dir)
    const { structure, damagedRecords } = await verify(dir)
    return [...found, ...structure, ...damagedRecords]
  } finally {
    reads.close()
  }
}

/** Files that a finished run must not leave behind. */
export function leftovers(dir: string): string[] {
  const derived = readdirSync(join(dir, 'derived')).filter((name) => name.startsWith('building-'))
  return [...derived, ...readdirSync(join(dir, 'downloads'))]
}
