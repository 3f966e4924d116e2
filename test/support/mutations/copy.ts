import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Mutation } from './mutation.ts'

/** What a copy of the checkout does not contain. */
const NOT_COPIED: ReadonlySet<string> = new Set(['.git', 'node_modules', 'dist', 'coverage', 'data'])

/** A copy of the checkout, in which a mutation can do no harm. */
export interface Checkout {
  readonly folder: string
  remove(): void
}

/** Copies the checkout that is the working folder, with what is not committed. */
export function copyCheckout(): Checkout {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-mutations-'))
  for (const name of readdirSync('.')) if (!NOT_COPIED.has(name)) cpSync(name, join(folder, name), { recursive: true })
  linkPackages(join(folder, 'node_modules'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Links the installed packages; what tools keep beside them (`.cache`, `.vite`) is the copy's own. */
function linkPackages(folder: string): void {
  mkdirSync(folder)
  for (const name of readdirSync('node_modules'))
    if (name === '.bin' || !name.startsWith('.')) symlinkSync(resolve('node_modules', name), join(folder, name))
}

/** Returns why a mutation cannot be made any more; null: its text occurs exactly once in its file. */
export function whyNot({ name, file, from, to }: Mutation, root = '.'): string | null {
  if (from === to) return `"${name}" changes nothing`
  const path = join(root, file)
  const places = existsSync(path) ? readFileSync(path, 'utf8').split(from).length - 1 : 0
  if (places === 1) return null
  return `"${name}": the text to replace occurs ${places} times in ${file}, not once: adapt the entry to the code`
}

/** Returns the text of the file with the defect. */
export function mutate(text: string, { from, to }: Mutation): string {
  return text.replace(from, () => to)
}
