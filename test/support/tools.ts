import { type ExecFileException, execFile, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { request } from 'node:http'
import { delimiter, join } from 'node:path'

const FOLDERS = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']

/** Where the first of these commands that is installed lies; null when none is. */
export function findTool(...names: readonly string[]): string | null {
  for (const name of names)
    for (const folder of FOLDERS) {
      const path = join(folder, name)
      try {
        accessSync(path, constants.X_OK)
        return path
      } catch {
        continue
      }
    }
  return null
}

/** What a command said, and its exit code. */
export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Ends a command that hangs, milliseconds: sooner than its test ends, and far beyond what it needs on a machine under load. */
const HANGS_AFTER_MS = 170_000

/** Runs a command to its end, at most `timeoutMs`. Code -1: it was killed. */
export function runTool(
  path: string,
  args: readonly string[],
  { cwd, env = {}, timeoutMs = HANGS_AFTER_MS }: RunOptions = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const options = {
      ...(cwd !== undefined && { cwd }),
      env: { ...process.env, LC_ALL: 'C', ...env },
      timeout: timeoutMs,
      maxBuffer: 64 * 1024 * 1024,
    }
    execFile(path, [...args], options, (error, out, err) => {
      resolve({ code: codeOf(error), out, err })
    })
  })
}

function codeOf(error: ExecFileException | null): number {
  if (error === null) return 0
  return typeof error.code === 'number' ? error.code : -1
}

/** How a command is run. */
export interface RunOptions {
  readonly cwd?: string
  readonly env?: Record<string, string>
  readonly timeoutMs?: number
}

/** Starts a server of somebody else's; `stop` ends it, by its own process group's id, and waits. */
export function startTool(path: string, args: readonly string[]) {
  const child = spawn(path, [...args], { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve()).once('error', () => resolve())
  })
  return {
    said: (): string => said,
    async stop(): Promise<void> {
      const running = child.exitCode === null && child.signalCode === null
      if (running && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
      await ended
    },
  }
}

/** What came back over a Unix socket, not decoded. */
export interface SocketReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** One GET over a Unix socket. Rejects while nobody listens there. */
export function getOver(socketPath: string, path: string, headers: Record<string, string> = {}): Promise<SocketReply> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path, headers: { host: 'mirror', ...headers } })
    sent.once('error', reject).once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () => {
        const { statusCode = 0, headers } = response
        resolve({ status: statusCode, headers, body: Buffer.concat(chunks) })
      })
    })
    sent.end()
  })
}
