import type { Block } from './blocks.ts'

/** A command of the program, as texts name it. */
const COMMAND = /\bpatchmirror [a-z]/

/** Returns the blocks of a page for clients without a key: only an operator can use the commands that notices name. */
export function withoutCommands(blocks: readonly Block[]): Block[] {
  return blocks.map((block) => {
    if (block.kind !== 'notice') return block
    const { commands: _, text, ...notice } = block
    const open = text === undefined ? '' : withoutCommand(text)
    return { ...notice, title: withoutCommand(block.title), ...(open !== '' && { text: open }) }
  })
}

/** Returns a text without the clauses that name a command. */
export function withoutCommand(text: string): string {
  const clauses = text.split(/(?<=[;:.]) /)
  if (!clauses.some((clause) => COMMAND.test(clause))) return text
  const kept = clauses.filter((clause) => !COMMAND.test(clause)).join(' ')
  return kept.replace(/[;:,]$/, clauses.at(-1)?.endsWith('.') === true ? '.' : '')
}
