import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { MirrorError } from '../../../src/base/errors.ts'
import {
  acquireLock,
  announceAddress,
  announceInstance,
  lockHolder,
  servingDaemon,
  servingProcess,
} from '../../../src/store/database/lock.ts'
import { lossBesideDaemon } from '../../../src/store/database/loss.ts'
import { startChild } from '../processes.ts'
import { scratch } from '../fixtures.ts'

function refusal(work: () => unknown): MirrorError {
  try {
    work()
  } catch (error) {
    if (error instanceof MirrorError) return error
    throw error
  }
  throw new Error('expected a refusal')
}

describe('a lock', () => {
  test('has one owner at a time, also within one process', () => {
    const dir = join(scratch(), 'not', 'there', 'yet')
    const lock = acquireLock(dir, 'sync')
    const { code, message } = refusal(() => acquireLock(dir, 'sync'))
    expect(code).toBe('locked')
    expect(message).toContain(`process ${process.pid}`)
    expect(message).toContain(dir)
    expect(message).toContain('"patchmirror status" shows it; try again when it has ended')
    lock.release()
    acquireLock(dir, 'sync').release()
  })

  test('of one name does not block another', () => {
    const dir = scratch()
    const serve = acquireLock(dir, 'serve')
    const sync = acquireLock(dir, 'sync')
    expect(refusal(() => acquireLock(dir, 'serve')).message).toContain('already serves')
    serve.release()
    sync.release()
  })

  test('may be released twice without effect on the next owner', () => {
    const dir = scratch()
    const first = acquireLock(dir, 'sync')
    first.release()
    const second = acquireLock(dir, 'sync')
    first.release()
    expect(refusal(() => acquireLock(dir, 'sync')).code).toBe('locked')
    second.release()
  })

  longTest('of another process is respected, and ends with that process', async () => {
    const dir = scratch()
    const child = await startChild('lock', dir)
    const { code, message } = refusal(() => acquireLock(dir, 'sync'))
    expect([code, message.includes(`process ${child.pid}`)]).toEqual(['locked', true])
    await child.kill()
    const lock = acquireLock(dir, 'sync')
    expect(readFileSync(join(dir, 'sync.lock.pid'), 'utf8')).toBe(String(process.pid))
    lock.release()
  })

  longTest('of a process is respected although somebody removed its file', async () => {
    const dir = scratch()
    const child = await startChild('lock', dir)
    rmSync(join(dir, 'sync.lock'))
    expect(lockHolder(dir, 'sync')).toBe(`process ${child.pid}`)
    const { code, message } = refusal(() => acquireLock(dir, 'sync'))
    expect([code, message.includes(`process ${child.pid}`)]).toEqual(['locked', true])
    await child.kill()
    expect(lockHolder(dir, 'sync')).toBe(null)
    acquireLock(dir, 'sync').release()
  })

  test('whose file was removed is found beside files that its process closes meanwhile', () => {
    const dir = scratch()
    const other = openSync(join(dir, 'other'), 'w')
    const lock = acquireLock(dir, 'sync')
    closeSync(other) // its number is the next one: that of the listed folder, which is closed before it is looked at
    rmSync(join(dir, 'sync.lock'))
    expect(lockHolder(dir, 'sync')).toBe(`process ${process.pid}`)
    lock.release()
    expect(lockHolder(dir, 'sync')).toBe(null)
  })

  test('is free when only its file was left behind', () => {
    const dir = scratch()
    writeFileSync(join(dir, 'sync.lock'), '')
    writeFileSync(join(dir, 'sync.lock.pid'), '999999')
    acquireLock(dir, 'sync').release()
  })

  test('whose owner could not be written on a full disk has it when the daemon announces itself again', () => {
    const dir = scratch()
    const lock = acquireLock(dir, 'serve')
    const instance = announceInstance(dir)
    for (const name of ['serve.lock.pid', 'serve.instance']) writeFileSync(join(dir, name), '')
    expect([servingDaemon(dir), servingProcess(dir)]).toEqual([null, null])
    expect(lockHolder(dir, 'serve')).toBe('process unknown')
    announceAddress(dir, instance, { port: 8080 })
    expect([servingDaemon(dir), servingProcess(dir)]).toEqual([{ instance, port: 8080 }, process.pid])
    lock.release()
  })

  test.each([
    ['a port', 8080],
    ['a socket', 0],
  ])('of a daemon on %s goes with the database that it has open, until the next has the lock', (_, port) => {
    const dir = scratch()
    const lock = acquireLock(dir, 'serve')
    const instance = announceInstance(dir)
    writeFileSync(join(dir, 'mirror.db'), 'one')
    expect(lossBesideDaemon(dir)).toBe(null)
    announceAddress(dir, instance, { port })
    expect(lossBesideDaemon(dir)).toBe(null)
    renameSync(join(dir, 'mirror.db'), join(dir, 'moved'))
    expect(lossBesideDaemon(dir)).toBe('missing')
    writeFileSync(join(dir, 'mirror.db'), '')
    expect(lossBesideDaemon(dir)).toBe('empty')
    writeFileSync(join(dir, 'mirror.db'), 'two')
    announceAddress(dir, instance, { port })
    expect(lossBesideDaemon(dir)).toBe('other')
    lock.release()
    expect(lossBesideDaemon(dir)).toBe(null)
    const next = acquireLock(dir, 'serve') // a repair takes it too
    expect(lossBesideDaemon(dir)).toBe(null)
    next.release()
  })

  test('in a place that does not support locks is a storage error', () => {
    const file = join(scratch(), 'file')
    writeFileSync(file, '')
    expect(refusal(() => acquireLock(file, 'sync')).code).toBe('storage')
  })
})
