import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type Sandbox, createSandbox } from '../../sandbox/server.ts'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { COMPILED, MAIN, type Started, start } from '../command.ts'
import { freePorts } from '../free-ports.ts'

/** A page whose blocks of shell are run as they are written, in their order. */
export interface Guide {
  readonly page: string
  /** What the first machine of the page has: the command, its settings as well, a mirror that has synced, or its views too. */
  readonly begins: 'command' | 'settings' | 'serving' | 'views'
}

/** A block of shell of a page. */
export interface GuideBlock {
  /** Its place in the page, from 1. */
  readonly line: number
  readonly script: string
  /** The standard output that the page shows right below it; null when it shows none. */
  readonly shown: string | null
  /** Why it is not run; null when it is. */
  readonly notRun: string | null
  /** The machine on which it is run: `mirror`, unless a comment before the block names another one. */
  readonly machine: string
}

/** The pages that are run. A block that needs another machine has a comment before it: `<!-- on: target -->`. */
export const GUIDES: readonly Guide[] = [
  { page: 'docs/getting-started.md', begins: 'command' },
  { page: 'docs/guides/install.md', begins: 'command' },
  { page: 'docs/guides/backup.md', begins: 'serving' },
  { page: 'docs/guides/upgrade.md', begins: 'serving' },
  { page: 'docs/guides/air-gap.md', begins: 'serving' },
  { page: 'docs/guides/webhooks.md', begins: 'serving' },
  { page: 'docs/guides/keys-and-proxies.md', begins: 'serving' },
  { page: 'docs/guides/relay.md', begins: 'settings' },
  { page: 'docs/guides/doctor.md', begins: 'serving' },
  { page: 'docs/guides/match.md', begins: 'views' },
  { page: 'docs/guides/since-when.md', begins: 'serving' },
  { page: 'docs/guides/changes.md', begins: 'serving' },
  { page: 'docs/guides/tags.md', begins: 'views' },
  { page: 'docs/guides/catalog.md', begins: 'serving' },
  { page: 'docs/guides/monitoring.md', begins: 'serving' },
  { page: 'docs/guides/scanners.md', begins: 'views' },
  { page: 'docs/guides/fleet.md', begins: 'settings' },
  { page: 'docs/reference/http-api.md', begins: 'serving' },
]

const BLOCK = /^( *)```(?:sh|bash|shell|console)\n([\s\S]*?)^ *```\n(?:\s*?^ *```text\n([\s\S]*?)^ *```\n)?/gm
const COMMENTS = /(?:<!-- [^>]* -->\s*)+$/

/** Reads the blocks of a page, with the comments before them. */
export function guideBlocks(page: string): GuideBlock[] {
  const text = readFileSync(page, 'utf8')
  return [...text.matchAll(BLOCK)].map(({ index, 1: indent = '', 2: script = '', 3: shown }) => {
    const above = text.slice(0, index)
    const comments = COMMENTS.exec(above)?.[0] ?? ''
    const flush = (block: string): string => block.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
    return {
      line: above.split('\n').length,
      script: flush(script),
      shown: shown === undefined ? null : flush(shown),
      notRun: /<!-- not run: (.*?) -->/.exec(comments)?.[1] ?? null,
      machine: /<!-- on: (.*?) -->/.exec(comments)?.[1] ?? 'mirror',
    }
  })
}

/** What came of a block: what it wrote to its standard output, and what the page shows of it. */
export interface RunBlock {
  readonly at: string
  readonly code: number | null
  readonly out: string
  readonly err: string
  readonly shown: string | null
}

/** Runs the blocks of a page, until one fails. Everything that they started has ended when this returns. */
export async function runGuide({ page, begins }: Guide): Promise<RunBlock[]> {
  const sandbox = await createSandbox({ records: 120 })
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-guide-'))
  const blocks = guideBlocks(page).filter(({ notRun }) => notRun === null)
  const names = [...new Set(blocks.map(({ machine }) => machine))]
  const ports = await freePorts(names.length)
  const world: World = { folder, sandbox, ports: new Map(names.map((name, i) => [name, ports[i] ?? 0])) }
  const machines = new Map<string, Machine>()
  const ran: RunBlock[] = []
  try {
    for (const { machine: name, line, script, shown } of blocks) {
      const machine = machines.get(name) ?? (await openMachine(name, world, machines.size === 0 ? begins : 'command'))
      machines.set(name, machine)
      const done = await machine.run(script)
      ran.push({ at: `${page}:${line}`, ...done, shown: shown === null ? null : machine.written(shown) })
      if (done.code !== 0) break
    }
  } finally {
    for (const machine of machines.values()) await machine.close()
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return ran
}

interface World {
  readonly folder: string
  readonly sandbox: Sandbox
  /** Where each machine of the page listens. */
  readonly ports: ReadonlyMap<string, number>
}

interface Machine {
  /** Returns a text of the page with the addresses and folders of this run. */
  written(text: string): string
  run(script: string): Promise<Pick<RunBlock, 'code' | 'out' | 'err'>>
  close(): Promise<void>
}

/** Folders that every machine has. Media are carried from one machine to the other. */
const FOLDERS = ['etc', 'var/backups', 'var/lib', 'var/log', 'run/secrets']
const MEDIA = 'media/usb'
const NAMED_FOLDER = /(?<![\w.])\/(etc|var|run|media)\//g

async function openMachine(name: string, world: World, begins: Guide['begins']): Promise<Machine> {
  const { folder, sandbox, ports } = world
  const root = join(folder, name)
  for (const one of [...FOLDERS, 'bin', 'tmp']) mkdirSync(join(root, one), { recursive: true })
  mkdirSync(join(folder, MEDIA), { recursive: true })
  writeFileSync(join(root, 'run/secrets/patchmirror-api-key'), SANDBOX_KEYS.admin, { mode: 0o600 })
  const command = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`
  writeFileSync(join(root, 'bin/patchmirror'), command, { mode: 0o755 })
  const port = ports.get(name) ?? 0
  const env = environment(root, port, begins === 'command' ? null : sandbox)
  const isServed = begins === 'serving' || begins === 'views'
  const daemon = isServed ? await startDaemon(env, root, begins) : null
  const shell = openShell(env, root)
  const addresses: readonly (readonly [page: string, here: string])[] = [
    ['https://api.example.com', sandbox.url],
    ['https://catalog.example.com', sandbox.catalogUrl],
    ['127.0.0.1:8080', `127.0.0.1:${port}`],
    ...[...ports].map(([other, at]) => [`https://${other}.example.com`, `http://127.0.0.1:${at}`] as const),
  ]
  const written = (text: string): string =>
    addresses
      .reduce((before, [page, here]) => before.replaceAll(page, here), text)
      .replaceAll(NAMED_FOLDER, (path, first: string) => `${first === 'media' ? folder : root}${path}`)
  return {
    written,
    run: (script) => shell.run(written(script)),
    async close() {
      await shell.close()
      daemon?.child.kill('SIGTERM')
      await daemon?.finished
    },
  }
}

function environment(root: string, port: number, sandbox: Sandbox | null): Record<string, string> {
  const known = sandbox
    ? {
        PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
        PATCHMIRROR_UPSTREAM_CATALOG_URL: sandbox.catalogUrl,
        PATCHMIRROR_UPSTREAM_API_KEY_FILE: join(root, 'run/secrets/patchmirror-api-key'),
        PATCHMIRROR_DATA_DIR: join(root, 'var/lib/patchmirror'),
      }
    : {}
  return {
    PATH: [join(root, 'bin'), process.env['PATH']].join(delimiter),
    HOME: root,
    TMPDIR: join(root, 'tmp'),
    NODE_COMPILE_CACHE: COMPILED,
    PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}`,
    PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.1', // the sandbox has its documents on this machine
    ...known,
  }
}

const SYNCED = [/osv sync: complete/, /feeds sync: complete/, /catalog sync: complete/]

/** Starts a daemon that has synced everything once, and, where that is asked for, made its views. */
async function startDaemon(env: Record<string, string>, root: string, begins: Guide['begins']): Promise<Started> {
  const daemon = start(['serve'], env, root)
  for (const said of SYNCED) await daemon.said(said)
  if (begins === 'views') for (const said of [/bucket is made/, /repository is made/]) await daemon.said(said)
  return daemon
}

/** A block that takes longer waits for what does not come, milliseconds. */
const BLOCK_MS = 150_000
/** The end of a block in the output of its shell. */
const END = /\0(\d+)\0/

/** Opens a shell that runs one block after the other, with the variables and background jobs of those before. */
function openShell(env: Record<string, string>, root: string) {
  const child = spawn('sh', ['-e'], { cwd: root, env, detached: true, stdio: 'pipe' })
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
  child.once('exit', () => killGroup(child)) // what a failed block left in the background would keep its output open
  let out = ''
  let err = ''
  let heard = (): void => undefined
  let number = 0
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
    heard()
  })
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  child.stdin.on('error', () => undefined) // a block that failed has ended the shell
  return {
    async run(script: string) {
      const file = join(root, `block-${++number}.sh`)
      writeFileSync(file, script)
      child.stdin.write(`. '${file}' </dev/null; printf '\\0%s\\0' $?\n`)
      const ended = new Promise<void>((resolve) => {
        heard = () => {
          if (END.test(out)) resolve()
        }
      })
      const deadline = setTimeout(() => killGroup(child), BLOCK_MS)
      const code = await Promise.race([ended.then(() => 0), closed.then((status) => status ?? 1)])
      clearTimeout(deadline)
      const said = { code, out: out.replace(END, ''), err }
      out = ''
      err = ''
      return said
    },
    async close() {
      child.stdin.end()
      killGroup(child)
      await closed
    },
  }
}

/** Ends the processes that a shell has started and left. */
function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // all have ended
  }
}

/** What differs from run to run, and what stands for it when two outputs are compared. */
const CHANGING: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC)?/g, '<time>'],
  [/\b(?:pmk|whsec)_[\w+/=-]+…?/g, '<secret>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<id>'],
  [/\b(?=[a-f]*\d)[0-9a-f]{10,}\b/g, '<digest>'],
  [/\b\d[\d,.]*(?: ?(?:ms|s|min|h|d|bytes|KB|MB)\b)?/g, '<number>'],
  [/(?:<number> )+/g, '<number> '],
  [/[ \t]+/g, ' '],
]

/** Lines of an output in which what changes is replaced, without empty ones. */
function linesOf(text: string): string[] {
  const plain = CHANGING.reduce((before, [pattern, word]) => before.replaceAll(pattern, word), text)
  return plain
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('{"level":'))
}

/** Compares what a page shows with what was written; `…` alone in a line stands for any lines. Returns both where they differ. */
export function compareShown(shown: string, out: string): { shown: string[]; out: string[] } | null {
  const expected = linesOf(shown)
  const written = linesOf(out)
  const escaped = (line: string): string => line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')
  const pattern = expected.map((line) => (line === '…' ? '(?:.*\n)*?' : `${escaped(line)}\n`)).join('')
  return new RegExp(`^${pattern}$`).test(written.map((line) => `${line}\n`).join(''))
    ? null
    : { shown: expected, out: written }
}
