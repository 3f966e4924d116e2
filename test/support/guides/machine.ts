import { mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Sandbox } from '../../sandbox/server.ts'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { COMPILED, MAIN, type Started, start } from '../command.ts'
import { startNginx } from './nginx.ts'
import { type Said, openShell } from './shell.ts'

/** What a machine has at first: the command, its settings as well, a mirror that has synced, or its views too; or a clone. */
export type Begins = 'clone' | 'command' | 'settings' | 'serving' | 'views'

/** Where the machines of a page are, and what they have in common. */
export interface World {
  readonly folder: string
  readonly sandbox: Sandbox
  /** Where each machine of the page listens. */
  readonly ports: ReadonlyMap<string, number>
  /** Where the proxy of the page listens. */
  readonly proxyPort: number
  /** The first of the ports of a sandbox that the page starts. */
  readonly sandboxPort: number
}

/** A machine of a page. */
export interface Machine {
  /** Returns a text of the page with the addresses and folders of this run. */
  written(text: string): string
  run(script: string): Promise<Said>
  close(): Promise<void>
}

/** A machine with a proxy has it running, as Debian's package starts it. */
const NGINX = /^ *nginx /m
/** Folders that every machine has. Media are carried from one machine to the other. */
const FOLDERS = ['etc', 'var/backups', 'var/cache', 'var/lib', 'var/log', 'run/secrets']
const MEDIA = 'media/usb'
const NAMED_FOLDER = /(?<![\w.])\/(etc|var|run|media)\//g

export async function openMachine(name: string, world: World, begins: Begins): Promise<Machine> {
  const { folder, sandbox, ports } = world
  const root = join(folder, name)
  mkdirSync(root, { mode: 0o755 }) // a second user comes through
  for (const one of [...FOLDERS, 'bin', 'tmp']) mkdirSync(join(root, one), { recursive: true })
  mkdirSync(join(folder, MEDIA), { recursive: true })
  writeFileSync(join(root, 'run/secrets/patchmirror-api-key'), SANDBOX_KEYS.admin, { mode: 0o600 })
  const command = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`
  writeFileSync(join(root, 'bin/patchmirror'), command, { mode: 0o755 })
  const port = ports.get(name) ?? 0
  const env = environment(root, port, begins, sandbox)
  const isServed = begins === 'serving' || begins === 'views'
  const daemon = isServed ? await startDaemon(env, root, begins) : null
  const shell = openShell(env, root, begins === 'clone' ? process.cwd() : root)
  const addresses: readonly (readonly [page: string, here: string])[] = [
    ['https://api.example.com', sandbox.url],
    ['https://catalog.example.com', sandbox.catalogUrl],
    ['127.0.0.1:8080', `127.0.0.1:${port}`],
    ['https://proxy.example.com', `http://127.0.0.1:${world.proxyPort}`],
    ['127.0.0.1:8090', `127.0.0.1:${world.sandboxPort}`],
    ['--port 8090', `--port ${world.sandboxPort}`],
    ['listen 443 ssl;', `listen 127.0.0.1:${world.proxyPort};`],
    ...[...ports].map(([other, at]) => [`https://${other}.example.com`, `http://127.0.0.1:${at}`] as const),
  ]
  const written = (text: string): string =>
    addresses
      .reduce((before, [page, here]) => before.replaceAll(page, here), text)
      .replaceAll(NAMED_FOLDER, (path, first: string) => `${first === 'media' ? folder : root}${path}`)
  let proxy: (() => Promise<void>) | null = null
  return {
    written,
    async run(script) {
      if (NGINX.test(script)) proxy ??= await startNginx(root)
      return await shell.run(written(script))
    },
    async close() {
      await proxy?.()
      await shell.close()
      daemon?.child.kill('SIGTERM')
      await daemon?.finished
    },
  }
}

function environment(root: string, port: number, begins: Begins, sandbox: Sandbox): Record<string, string> {
  const folder = { PATCHMIRROR_DATA_DIR: join(root, 'var/lib/patchmirror') } // not `data` of the clone
  const service = {
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_UPSTREAM_CATALOG_URL: sandbox.catalogUrl,
    PATCHMIRROR_UPSTREAM_API_KEY_FILE: join(root, 'run/secrets/patchmirror-api-key'),
  }
  const known = begins === 'command' ? {} : folder
  const settings = begins === 'command' || begins === 'clone' ? {} : service
  return {
    PATH: [join(root, 'bin'), process.env['PATH']].join(delimiter),
    HOME: root,
    TMPDIR: join(root, 'tmp'),
    NODE_COMPILE_CACHE: COMPILED,
    PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}`,
    PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.1', // the sandbox has its documents on this machine
    ...known,
    ...settings,
  }
}

const SYNCED = [/osv sync: complete/, /feeds sync: complete/, /catalog sync: complete/]

/** Starts a daemon that has synced everything once, and, where that is asked for, made its views. */
async function startDaemon(env: Record<string, string>, root: string, begins: Begins): Promise<Started> {
  const daemon = start(['serve'], env, root)
  for (const said of SYNCED) await daemon.said(said)
  if (begins === 'views') for (const said of [/bucket is made/, /repository is made/]) await daemon.said(said)
  return daemon
}
