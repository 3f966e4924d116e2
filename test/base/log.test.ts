import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openLogFile, writeLine } from '../../src/base/log.ts'
import { scratch } from '../webhooks/inbox/inboxes.ts'

test.skipIf(!existsSync('/dev/full'))('a log that cannot be written drops the line and does not throw', () => {
  const full = openSync('/dev/full', 'w')
  expect(() => writeLine('a line\n', full)).not.toThrow()
  closeSync(full)
  expect(() => writeLine('a line\n', full)).not.toThrow()
})

describe('a log file', () => {
  const make = (path: string) => {
    const said: string[] = []
    return { said, file: openLogFile(path, { fallback: (line) => said.push(line) }) }
  }

  test('is created with its mode, appended to, and opened again under its name after a rename', () => {
    const path = join(scratch(), 'mirror.log')
    writeFileSync(path, 'before\n')
    const { file } = make(path)
    file.write('one\n')
    renameSync(path, `${path}.1`)
    file.write('two\n')
    file.reopen()
    file.write('three\n')
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('before\none\ntwo\n')
    expect(readFileSync(path, 'utf8')).toBe('three\n')
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('that cannot be written gives its lines to standard error, and says afterwards how many', () => {
    const folder = join(scratch(), 'logs')
    mkdirSync(folder)
    const { said, file } = make(join(folder, 'mirror.log'))
    rmSync(folder, { recursive: true })
    file.reopen() // the folder is missing: the file that is open stays in use
    file.write('kept\n')
    expect(said.join('')).toMatch(/log\.file\) cannot be written \(ENOENT/)
    expect(() => make(join(folder, 'mirror.log'))).toThrow(/set log\.file to a file in a folder/)
  })

  test.skipIf(!existsSync('/dev/full'))('on a full disk loses no line and stops nothing', () => {
    const { said, file } = make('/dev/full')
    file.write('one\n')
    file.write('two\n')
    expect(said).toEqual([expect.stringMatching(/cannot be written \(ENOSPC/), 'one\n', 'two\n'])
  })

  test('that is a FIFO which nobody reads stops nothing', () => {
    const path = join(scratch(), 'mirror.log')
    execFileSync('mkfifo', [path])
    const { said, file } = make(path)
    file.write('one\n')
    expect(said).toEqual([expect.stringMatching(/cannot be written \(ENXIO/), 'one\n'])
  })
})
