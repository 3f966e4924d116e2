import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { basename } from 'node:path'
import { ROOT } from './processes.ts'

/**
 * Writes a measured process's modules, the first its entry, as plain JavaScript into one folder, and returns the entry's path: what
 * removes types takes some megabytes of a process that loads TypeScript. Paths in `test/bench`, without `.ts`.
 */
export function plainScript(...modules: string[]): string {
  const folder = `${ROOT}dist/bench`
  mkdirSync(folder, { recursive: true })
  const paths = modules.map((module) => {
    const text = stripTypeScriptTypes(readFileSync(`${ROOT}test/bench/${module}.ts`, 'utf8'))
    const path = `${folder}/${basename(module)}.js`
    writeFileSync(path, text.replace(/(?<=from ')\.[^']*?(\w[\w-]*)\.ts(?=')/g, './$1.js'))
    return path
  })
  return paths[0] ?? ''
}
