import { spawn } from 'node:child_process'
import { COMPILED } from '../../../../support/command.ts'
import { killWhenHere } from '../../../../support/killed.ts'
import type { VexBench } from './history.ts'

const urlOf = (path: string): string => JSON.stringify(new URL(`../../../../../src/${path}`, import.meta.url).href)

/** Makes a repository in a process that counts what it does with files; it ends with that number. */
const CODE = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const { writeSync } = fs
  const { dataDir, snapshot, documents, operation } = JSON.parse(fs.readFileSync(0, 'utf8'))
  const { makeVexRepository } = await import(${urlOf('features/scanners/views/vex/repository.ts')})
  let count = 0
  for (const name of ['mkdirSync', 'openSync', 'writeSync', 'writeFileSync', 'renameSync', 'rmSync']) {
    const call = fs[name]
    fs[name] = (...args) => {
      if (++count === operation) {
        writeSync(1, 'here\\n')
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
      }
      return call(...args)
    }
  }
  syncBuiltinESMExports()
  const contents = new Map(documents.map(({ digest, content }) => [digest, Buffer.from(content, 'base64')]))
  const reads = {
    listVexDocuments: () => documents.map(({ content, ...one }) => ({ ...one, size: contents.get(one.digest).length })),
    readVexContent: ({ digest }) => contents.get(digest),
  }
  await makeVexRepository({ dataDir, reads, snapshot, pause: () => Promise.resolve() })
  writeSync(1, 'operations ' + count + '\\n')`

/**
 * Makes the repository of a bench in a process of its own, and kills it -9 before it does something with a file, that is the
 * `operation`-th time; null where it was killed, otherwise how often it did.
 */
export function makeKilled(bench: VexBench, operation: number): Promise<number | null> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', CODE], {
    env: { NODE_NO_WARNINGS: '1', NODE_COMPILE_CACHE: COMPILED },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const documents = [...bench.documents]
    .filter(([, { isDamaged }]) => !isDamaged)
    .map(([digest, { content, changed }]) => ({
      digest,
      changed,
      content: content.toString('base64'),
    }))
    .sort((one, other) => (one.digest < other.digest ? -1 : 1))
  const snapshot = { id: `killed-${operation}`, asOf: 1 }
  child.stdin.end(JSON.stringify({ dataDir: bench.dir, snapshot, documents, operation }))
  return killWhenHere(child)
}
