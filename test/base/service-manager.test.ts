import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { serviceManager } from '../../src/base/service-manager.ts'
import { findTool, runTool } from '../support/tools.ts'

const SYSTEMD_NOTIFY = findTool('systemd-notify')
const SYSTEMD_ANALYZE = findTool('systemd-analyze')
const PYTHON = findTool('python3')
/** Exposure of the unit as `systemd-analyze security` counts it, in tenths. */
const MOST_EXPOSED = 20

let dir: string
let warnings: string[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-manager-'))
  warnings = []
})

afterEach(() => rmSync(dir, { recursive: true, force: true }))

/** The manager of this process, with a command `systemd-notify` that writes down its arguments. */
function recorded(env: Record<string, string>) {
  const file = join(dir, 'sent')
  writeFileSync(file, '')
  writeFileSync(join(dir, 'systemd-notify'), `#!/bin/sh\necho "$*" >> '${file}'\n`, { mode: 0o755 })
  const path = [dir, process.env['PATH']].join(delimiter)
  const manager = serviceManager({
    env: { PATH: path, ...env },
    pid: process.pid,
    warn: (text) => void warnings.push(text),
  })
  const sent = (): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return { manager, sent }
}

test('messages go to the service manager in order, and nothing is sent without NOTIFY_SOCKET', async () => {
  const { manager, sent } = recorded({ NOTIFY_SOCKET: '/run/notify' })
  manager.ready('serving http://localhost:8080')
  manager.reloading()
  manager.ready('serving again')
  manager.stopping()
  await manager.close()
  expect(sent()).toEqual([
    'READY=1 STATUS=serving http://localhost:8080',
    expect.stringMatching(/^RELOADING=1 MONOTONIC_USEC=\d+$/),
    'READY=1 STATUS=serving again',
    'STOPPING=1 STATUS=stopping',
  ])
  const silent = recorded({})
  silent.manager.ready('serving')
  await silent.manager.close()
  expect([silent.sent(), warnings]).toEqual([[], []])
})

test('the watchdog is notified only while the serving loop answers', async () => {
  const { manager, sent } = recorded({ NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '4000' })
  let asked = 0
  let works = true
  manager.watch(async () => {
    asked++
    if (!works && asked % 2 === 0) throw new Error('the page failed')
    return Promise.resolve(works)
  })
  await expect.poll(sent).toContain('WATCHDOG=1')
  works = false
  const since = asked
  await expect.poll(() => asked).toBeGreaterThan(since + 1)
  await manager.close()
  const count = sent().length
  const other = recorded({ NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '4000', WATCHDOG_PID: '1' })
  other.manager.watch(() => Promise.reject(new Error('never asked')))
  await other.manager.close()
  expect(count).toBeGreaterThan(0)
  expect(other.sent()).toEqual([])
})

test('the watchdog is not notified when the serving loop never answers', async () => {
  const { manager, sent } = recorded({ NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '2000' })
  let asked = 0
  await new Promise<void>((resolve) =>
    manager.watch(() => {
      asked++
      resolve()
      return new Promise(() => undefined)
    }),
  )
  await manager.close()
  expect([asked, sent()]).toEqual([1, []])
})

test('a missing systemd-notify is logged once and stops nothing', async () => {
  const env = { NOTIFY_SOCKET: '/run/notify', PATH: dir }
  const warn = (text: string): void => void warnings.push(text)
  const manager = serviceManager({ env, pid: process.pid, warn })
  manager.ready('serving')
  manager.stopping()
  await manager.close()
  expect(warnings).toEqual([expect.stringMatching(/systemd-notify: .*ENOENT/)])
})

const RECEIVER = `
import socket, sys
at = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
at.bind(sys.argv[1])
print('bound', flush=True)
stopping = False
while True:
    text, files, *_ = socket.recv_fds(at, 4096, 8)
    if text: print(text.decode().replace('\\n', ' '), flush=True)
    [socket.close(one) for one in files]
    stopping = stopping or b'STOPPING=1' in text
    if stopping and files: break
`

test.skipIf(SYSTEMD_NOTIFY === null || PYTHON === null)(
  'a service manager on a socket receives the messages (needs systemd-notify and python3)',
  async () => {
    const at = join(dir, 'notify')
    const child = spawn(PYTHON ?? '', ['-c', RECEIVER, at], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let received = ''
    child.stdout.on('data', (chunk: Buffer) => (received += chunk.toString()))
    const ended = new Promise((resolve) => child.once('close', resolve))
    await expect.poll(() => received).toContain('bound')
    const env = { ...process.env, NOTIFY_SOCKET: at }
    const warn = (text: string): void => void warnings.push(text)
    const manager = serviceManager({ env, pid: process.pid, warn })
    manager.ready('serving http://localhost:8080')
    manager.stopping()
    await manager.close()
    await ended
    const messages = received.split('\n').filter((line) => /READY|STOPPING/.test(line))
    expect(messages).toEqual(['READY=1 STATUS=serving http://localhost:8080', 'STOPPING=1 STATUS=stopping'])
    expect(warnings).toEqual([])
  },
)

test.skipIf(SYSTEMD_ANALYZE === null)(
  'the unit and its drop-in are valid and exposed by at most 2.0 (needs systemd-analyze)',
  async () => {
    const unit = join(dir, 'patchmirror.service')
    mkdirSync(`${unit}.d`)
    cpSync('deploy/systemd/patchmirror.service', unit)
    cpSync('deploy/systemd/credentials.conf', join(`${unit}.d`, 'credentials.conf'))
    const env = { SYSTEMD_UNIT_PATH: `${dir}:` }
    const verified = await runTool(SYSTEMD_ANALYZE ?? '', ['verify', unit], { env })
    expect([verified.code, verified.err]).toEqual([0, ''])
    const args = ['security', '--offline=yes', `--threshold=${MOST_EXPOSED}`, unit]
    expect(await runTool(SYSTEMD_ANALYZE ?? '', args, { env })).toMatchObject({ code: 0 })
  },
)
