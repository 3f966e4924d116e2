import { spawn } from 'node:child_process'
import { COMPILED } from '../../support/command.ts'
import { killWhenHere } from '../../support/killed.ts'

/** Where a judgement is killed. */
export interface KillPlace {
  /** The statement of SQL, from 1, before which it says that it is there; more than there are: it is not killed. */
  readonly statement: number
  /** It goes on meanwhile, and is killed somewhere behind that place; otherwise it waits there. */
  readonly running: boolean
}

const urlOf = (path: string): string => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).href)

/** Judges in a process that counts its statements; it ends with their number. */
const CODE = `
  import { writeSync } from 'node:fs'
  const { Database } = await import(${urlOf('store/database/sqlite.ts')})
  const { performFindings } = await import(${urlOf('features/findings/task.ts')})
  const { dataDir, now, statement, running } = JSON.parse(process.argv[1])
  let count = 0
  const counting = (call) => function (...args) {
    if (++count === statement) {
      writeSync(1, 'here\\n')
      if (!running) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    }
    return call.apply(this, args)
  }
  const statements = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1'))
  statements.run = counting(statements.run)
  Database.prototype.exec = counting(Database.prototype.exec)
  await performFindings({ dataDir, served: null, keepDays: 30 }, now)
  writeSync(1, 'statements ' + count + '\\n')`

/**
 * Judges the tags of a data folder in a process of its own, and kills it -9; null where it was killed, otherwise the number
 * of statements that it executed.
 */
export function judgeKilled(dataDir: string, now: number, { statement, running }: KillPlace): Promise<number | null> {
  const args = ['--input-type=module', '-e', CODE]
  const child = spawn(process.execPath, [...args, JSON.stringify({ dataDir, now, statement, running })], {
    env: { NODE_NO_WARNINGS: '1', NODE_COMPILE_CACHE: COMPILED },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return killWhenHere(child)
}
