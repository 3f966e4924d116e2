import { type ChildProcess, fork, spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'

/** The repository's root. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** Resolves with the first message of a child that `accept` takes; rejects when the child ends before. */
export function messageFrom<T>(child: ChildProcess, accept: (message: T) => boolean): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a child ended with ${code}`))
    const receive = (message: unknown): void => {
      if (!accept(message as T)) return
      child.off('message', receive)
      child.off('exit', ended)
      resolve(message as T)
    }
    child.on('message', receive)
    child.once('exit', ended)
  })
}

export function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve()
    else child.once('exit', () => resolve())
  })
}

/** A request as the stand-in logged it. */
export interface LoggedRequest {
  host: 'api' | 'catalog' | 'artifacts' | 'identity'
  path: string
  query: Record<string, string>
  headers: Record<string, string>
}

export interface SandboxProcess {
  url: string
  catalogUrl: string
  artifactUrl: string
  identityUrl: string
  command(name: string, n: number): Promise<void>
  /** The newest requests, oldest first; as many as `--keep-requests` says. */
  requests(): Promise<LoggedRequest[]>
  forgetRequests(): Promise<void>
  /** How many there are of each kind of thing. */
  counts(): Promise<Record<string, number>>
  stop(): Promise<void>
}

/** The stand-in service in a process of its own, warmed: index and archive are built before anyone measures. */
export async function startSandbox(records: number, extra: string[] = []): Promise<SandboxProcess> {
  const args = ['--port', '0', '--records', String(records), ...extra]
  const options = { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] as const }
  const child = fork(`${ROOT}test/sandbox/main.ts`, args, { ...options, stdio: [...options.stdio] })
  const addresses = await messageFrom<Pick<SandboxProcess, 'url' | 'catalogUrl' | 'artifactUrl' | 'identityUrl'>>(
    child,
    (message) => 'url' in message,
  )
  const { url } = addresses
  const control = (path: string, method: string): Promise<Response> => fetch(`${url}/-/sandbox/${path}`, { method })
  const warm = async (): Promise<void> => {
    for (const path of ['/external/osv/all.json', '/external/osv/all.zip']) {
      const answer = await fetch(url + path, { headers: { 'accept-encoding': 'gzip' } })
      for await (const _ of bytesOf(answer)); // read to its end
    }
    await control('requests', 'DELETE')
  }
  await warm()
  return {
    ...addresses,
    async command(name, n) {
      const answer = await control(`${name}?n=${n}`, 'POST')
      if (!answer.ok) throw new Error(`sandbox ${name}: ${answer.status}`)
      await warm()
    },
    async requests() {
      return (await (await control('requests', 'GET')).json()) as LoggedRequest[]
    },
    async forgetRequests() {
      await control('requests', 'DELETE')
    },
    async counts() {
      const { counts } = (await (await control('state', 'GET')).json()) as {
        counts: Record<string, number>
      }
      return counts
    },
    async stop() {
      child.kill()
      await ended(child)
    },
  }
}

/** Writes what an address answers into a file, without holding it in memory. */
export async function download(url: string, file: string): Promise<void> {
  await pipeline(bytesOf(await fetch(url)), createWriteStream(file))
}

function bytesOf({ ok, status, url, body }: Response): Readable {
  if (!ok || body === null) throw new Error(`${url}: ${status}`)
  return Readable.fromWeb(body)
}

/** Runs a program to its end: wall time in milliseconds, peak memory in bytes as the system counted it. */
export async function timed(command: string, args: string[]): Promise<{ ms: number; peak: number; out: string }> {
  const started = performance.now()
  const child = spawn('/usr/bin/env', [command, ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  await ended(child)
  if (child.exitCode !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${child.exitCode}`)
  const told = JSON.parse(out.trim().split('\n').at(-1) || '{}') as { ms?: number; peak?: number }
  return { ms: told.ms ?? performance.now() - started, peak: told.peak ?? 0, out }
}
