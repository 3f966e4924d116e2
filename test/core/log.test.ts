import { closeSync, existsSync, openSync } from 'node:fs'
import { expect, test } from 'vitest'
import { writeLine } from '../../src/core/log.ts'

test.skipIf(!existsSync('/dev/full'))(
  'a log that cannot be written drops the line and does not throw',
  () => {
    const full = openSync('/dev/full', 'w')
    expect(() => writeLine('a line\n', full)).not.toThrow()
    closeSync(full)
    expect(() => writeLine('a line\n', full)).not.toThrow()
  },
)
