import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { type Socket, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { randomBytes } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { openShortReads } from '../../src/store/reads.ts'
import { makeOsvViews } from '../../src/features/scanners/views/osv/views.ts'
import { heldRecord } from '../server/scanners/served-osv.ts'
import { openFilledStore } from '../support/filled-store.ts'

/** Whether the memory of another process can be read. */
export const canWeigh = existsSync('/proc/self/status')

/** A mirror in a process of its own. */
export interface Crowded {
  readonly child: ChildProcess
  readonly port: number
  /** Watches its memory for some seconds; the most of each, in bytes. */
  readonly watch: (seconds: number) => Promise<Weight>
}

/** Memory of a process, bytes. */
export interface Weight {
  /** What it has of the system; of it, what is collected later varies by chance. */
  readonly used: number
  /** What it keeps: heap and buffers after a collection. */
  readonly kept: number
}

/** A question of few bytes, whose answer has 900 records of four kilobytes. */
export const QUESTION = JSON.stringify({ package: { ecosystem: 'npm', name: 'large' } })

/**
 * The heap of a small container: the process has to live with it. On a machine with much memory V8 collects late, and what is
 * kept could not be told from what is not collected yet.
 */
const SMALL_HEAP = ['--expose-gc', '--max-semi-space-size=8', '--max-old-space-size=160']

/** Starts a mirror that answers `QUESTION`. */
export async function startCrowded(): Promise<Crowded> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-crowd-'))
  await fill(dir)
  const file = fileURLToPath(new URL('./crowd-child.ts', import.meta.url))
  const child = spawn(process.execPath, [...SMALL_HEAP, file, dir], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
    rmSync(dir, { recursive: true, force: true })
  })
  const [port] = (await once(child, 'message')) as [number]
  return { child, port, watch: (seconds) => watch(child, seconds) }
}

async function watch(child: ChildProcess, seconds: number): Promise<Weight> {
  const most = { used: 0, kept: 0 }
  const onSaid = (kept: unknown): void => {
    most.kept = Math.max(most.kept, Number(kept))
  }
  child.on('message', onSaid)
  for (let second = 0; second < seconds; second++) {
    await sleep(1000)
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    most.used = Math.max(most.used, Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024)
  }
  child.off('message', onSaid)
  return most
}

async function fill(dir: string): Promise<void> {
  const records = Array.from({ length: 900 }, (_, n) => {
    const { id, text } = heldRecord(`L-${n}`, 'npm', 'large', '2.0.0')
    return [id, text.replace('{', `{"details":"${randomBytes(2048).toString('hex')}",`)] as const
  })
  const small = heldRecord('S-1', 'npm', 'small', '2.0.0')
  const store = openFilledStore(dir)
  store.publishOsv(Object.fromEntries([...records, [small.id, small.text]]))
  store.close()
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  const pause = () => Promise.resolve()
  await makeOsvViews({ dataDir: dir, reads: reads.reads, vendors: [], pause })
  reads.close()
}

/** Opens a connection that sends this and reads nothing; `from`: the address it comes from. */
export async function sendUnread(port: number, text: string | Buffer, from?: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', ...(from && { localAddress: from }) })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined).pause()
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  socket.write(text)
  return socket
}

/** A POST whose body is announced, and not sent. */
export function headOf(path: string, bytes: number): string {
  return `POST ${path} HTTP/1.1\r\nHost: m\r\nContent-Length: ${bytes}\r\n\r\n`
}

/** What an honest client gets, from another address; the status is 0 where its connection was closed. */
export async function ask(
  port: number,
  path: string,
  body?: string | Buffer,
  from = '127.0.0.9',
): Promise<{ status: number; body: string }> {
  const method = body === undefined ? 'GET' : 'POST'
  const to = { port, host: '127.0.0.1', localAddress: from, path, method, agent: false }
  const sent = request(to)
  sent.end(body)
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response) text += String(chunk)
    return { status: response.statusCode ?? 0, body: text }
  } catch {
    return { status: 0, body: '' }
  }
}
