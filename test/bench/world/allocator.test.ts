import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { GLIBC, JEMALLOC } from './allocator.ts'

const textsOf = (settings: object): string[] => Object.entries(settings).map((pair) => pair.join('='))

test("the measured processes have the allocator's settings of the image, the guide and the systemd unit", () => {
  for (const path of ['Dockerfile', 'docs/guides/systemd.md'])
    for (const text of textsOf(JEMALLOC)) expect(readFileSync(path, 'utf8'), path).toContain(text)
  const unit = readFileSync('deploy/systemd/patchmirror.service', 'utf8')
  for (const text of textsOf(GLIBC)) expect(unit).toContain(`Environment=${text}\n`)
})
