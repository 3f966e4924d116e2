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

/** Returns a text without what names a command: a remark in parentheses, and a clause, from the colon before it where there is one. */
export function withoutCommand(text: string): string {
  const plain = text.replace(REMARK, '')
  if (!COMMAND.test(plain)) return plain
  const clauses = plain.split(/(?<=[;.]) /).map(beginningOf)
  const kept = clauses.filter((clause) => clause !== '').join(' ')
  return kept.replace(/;(?= \p{Lu})/gu, '.').replace(/;$/, plain.endsWith('.') ? '.' : '')
}

/** A remark that names a command. */
const REMARK = / \([^()]*\bpatchmirror [a-z][^()]*\)/g

/** Returns a clause up to the colon before a command that it names; '' where none is before it. */
function beginningOf(clause: string): string {
  const command = clause.search(COMMAND)
  if (command < 0) return clause
  const colon = clause.lastIndexOf(': ', command)
  return colon < 0 ? '' : clause.slice(0, colon) + (/[;.]$/.exec(clause)?.[0] ?? '')
}
