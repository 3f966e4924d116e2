import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { ALLOCATOR } from '../world/allocator.ts'
import type { Section } from './group.ts'
import { markdown } from './table.ts'

/** How often and where a group was measured. When, the history of the page says. */
export interface Taken {
  readonly runs: number
  readonly machine: string
}

/** The page as it is in the file: a row and a section for each group that was ever measured, and what people wrote below. */
interface Page {
  /** Cells by the name of the group. */
  readonly rows: Map<string, readonly string[]>
  readonly sections: Map<string, string>
  /** From the first heading of the second level to the end. */
  readonly below: string
}

const HEAD = `# Benchmarks

\`npm run bench\` writes the tables; \`npm run bench -- --only NAME\` measures one group and replaces only its lines. Both sides of
a comparison are taken in turn. A machine's speed drifts, so compare within a group only. Client, stand-in service and mirror
share the machine and its allocator. The median decides about goals of times and ratios, the worst run about memory and counts.
A goal that is not called missed is met. Memory is resident, of the whole process with all threads.

| group | runs | machine |
|---|---|---|`

/** Replaces what the page in `file` has of a group, and writes the files beside it; keeps everything else. `names`: all groups, in order. */
export function writePage(file: string, section: Section, { runs, machine }: Taken, names: readonly string[]): void {
  const page = parsePage(existsSync(file) ? readFileSync(file, 'utf8') : '')
  page.rows.set(section.name, [section.name, String(runs), machine])
  page.sections.set(section.name, sectionText(section))
  for (const [name, content] of Object.entries(section.more.files)) writeFileSync(join(dirname(file), name), content)
  const rows = writeRows(names.flatMap((name) => [page.rows.get(name) ?? []]).filter((cells) => cells.length > 0))
  const texts = names.flatMap((name) => page.sections.get(name) ?? [])
  writeFileSync(file, [[HEAD, ...rows].join('\n'), ...texts, page.below].join('\n\n').trim() + '\n')
}

/** Writes the section of a group: heading, what its lines share, table, and what is below it. */
export function sectionText({ name, about, lines, more }: Section): string {
  return [`### ${name}`, about, markdown(lines), more.text].filter((part) => part !== '').join('\n\n')
}

function parsePage(text: string): Page {
  const at = text.search(/^## /m)
  const above = at < 0 ? text : text.slice(0, at)
  const [head = '', ...parts] = above.split(/^(?=### )/m)
  const sections = parts.map((part): [string, string] => {
    return [/^### (.*)$/m.exec(part)?.[1] ?? '', part.trim()]
  })
  return {
    rows: new Map(parseRows(head).map((cells) => [cells[0] ?? '', cells])),
    sections: new Map(sections),
    below: at < 0 ? '' : text.slice(at).trim(),
  }
}

/** Writes the rows of groups; a machine that is that of the row above is not named again. */
function writeRows(rows: readonly (readonly string[])[]): string[] {
  return rows.map((cells, at) => {
    const machine = cells.at(-1) ?? ''
    const shown = machine === rows[at - 1]?.at(-1) ? '' : machine
    return `| ${[...cells.slice(0, -1), shown].join(' | ')} |`
  })
}

function parseRows(text: string): string[][] {
  let machine = ''
  return [...text.matchAll(/^\| ([a-z]+) \|(.*)\|$/gm)]
    .map(([, name = '', rest = '']) => {
      const cells = rest.split('|').map((cell) => cell.trim())
      machine = cells.at(-1) || machine
      return [name, ...cells.slice(0, -1), machine]
    })
    .slice(1) // without the table's head
}

/** Returns the machine, and how often it measured. */
export function takenNow(runs: number): Taken {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  const machine = `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, ${memory} GiB, Node ${process.version}, ${ALLOCATOR.name}`
  return { runs, machine }
}
