import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { createSandbox } from '../../sandbox/server.ts'
import { freePort, portsInARow } from '../free-ports.ts'
import { findTool } from '../tools.ts'
import { openDiode } from './diode.ts'
import { type Begins, type Machine, type World, openMachine } from './machine.ts'
import type { Said } from './shell.ts'

/** A page whose blocks of shell are run as they are written, in their order. */
export interface Guide {
  readonly page: string
  readonly begins: Begins
  /** What other machines of the page begin with; default: the command. */
  readonly others?: Readonly<Record<string, Begins>>
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
  /** What this machine lacks to run it, as its comment `<!-- needs: nginx, root -->` says. */
  readonly lacking: readonly string[]
  /** What has happened before, of which the page says nothing; null: nothing. */
  readonly before: string | null
  /** The machine on which it is run: `mirror`, unless a comment before the block names another one. */
  readonly machine: string
}

/**
 * The pages that are run. Comments before a block: `<!-- on: target -->` names another machine, `<!-- before: COMMANDS -->` has
 * what the page presumes, `<!-- needs: nginx, root -->` names what not every machine has, `<!-- not run: WHY -->`.
 */
export const GUIDES: readonly Guide[] = [
  { page: 'docs/getting-started.md', begins: 'command' },
  { page: 'CONTRIBUTING.md', begins: 'clone' },
  { page: 'docs/guides/install.md', begins: 'command' },
  { page: 'docs/guides/backup.md', begins: 'serving' },
  { page: 'docs/guides/upgrade.md', begins: 'serving' },
  { page: 'docs/guides/air-gap.md', begins: 'serving' },
  { page: 'docs/guides/diode.md', begins: 'settings' },
  { page: 'docs/guides/webhooks.md', begins: 'serving' },
  { page: 'docs/guides/keys-and-proxies.md', begins: 'serving', others: { proxied: 'settings' } },
  { page: 'docs/guides/relay.md', begins: 'settings' },
  { page: 'docs/guides/doctor.md', begins: 'serving' },
  { page: 'docs/guides/match.md', begins: 'views' },
  { page: 'docs/guides/since-when.md', begins: 'serving' },
  { page: 'docs/guides/changes.md', begins: 'serving' },
  { page: 'docs/guides/tags.md', begins: 'views' },
  { page: 'docs/guides/catalog.md', begins: 'serving' },
  { page: 'docs/guides/monitoring.md', begins: 'serving' },
  { page: 'docs/guides/caches.md', begins: 'serving' },
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
    const said = (word: string): string | null => new RegExp(`<!-- ${word}: ([^]*?) -->`).exec(comments)?.[1] ?? null
    const flush = (block: string): string => block.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
    return {
      line: above.split('\n').length,
      script: flush(script),
      shown: shown === undefined ? null : flush(shown),
      notRun: said('not run'),
      lacking: (said('needs')?.split(', ') ?? []).filter((need) => !isHere(need)),
      before: said('before'),
      machine: said('on') ?? 'mirror',
    }
  })
}

/** Whether this machine has a command, or whether the tests are run by root. */
function isHere(need: string): boolean {
  return need === 'root' ? userInfo().uid === 0 : findTool(need) !== null
}

/** The blocks of a page that this machine can run. */
export function runnableBlocks(page: string): GuideBlock[] {
  return guideBlocks(page).filter(({ notRun, lacking }) => notRun === null && lacking.length === 0)
}

/** What came of a block: what it wrote to its standard output, and what the page shows of it. */
export interface RunBlock extends Said {
  readonly at: string
  readonly shown: string | null
}

/** Runs the blocks of a page, until one fails. Everything that they started has ended when this returns. */
export async function runGuide({ page, begins, others = {} }: Guide): Promise<RunBlock[]> {
  const sandbox = await createSandbox({ records: 120 })
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-guide-'))
  const blocks = runnableBlocks(page)
  const names = [...new Set(blocks.map(({ machine }) => machine))]
  const ports = new Map<string, number>()
  for (const name of names) ports.set(name, await freePort())
  const world: World = { folder, sandbox, ports, proxyPort: await freePort(), sandboxPort: await portsInARow(4) }
  chmodSync(folder, 0o755)
  const closeDiode = openDiode(join(folder, 'media/diode'))
  const machines = new Map<string, Machine>()
  const ran: RunBlock[] = []
  try {
    for (const { machine: name, line, script, shown, before } of blocks) {
      const first = machines.size === 0 ? begins : (others[name] ?? 'command')
      const machine = machines.get(name) ?? (await openMachine(name, world, first))
      machines.set(name, machine)
      const presumed = before === null ? null : await machine.run(before)
      const done = presumed === null || presumed.code === 0 ? await machine.run(script) : presumed
      ran.push({ at: `${page}:${line}`, ...done, shown: shown === null ? null : machine.written(shown) })
      if (done.code !== 0) break
    }
  } finally {
    for (const machine of machines.values()) await machine.close()
    closeDiode()
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return ran
}
