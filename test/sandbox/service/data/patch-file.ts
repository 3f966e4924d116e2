import { sentence } from '../../feed/text-generator.ts'
import type { Random } from '../../feed/random.ts'

/** A patch as git writes it: a message and a unified diff of one to four hunks, about 1 to 4 KB. */
export function patchFile(random: Random): Buffer {
  const file = `src/${random.pick(['parser', 'session', 'url', 'header', 'buffer'])}.c`
  const hunks = Array.from({ length: random.between(1, 4) }, (_, n) => hunk(random, 20 + n * 60))
  return Buffer.from(
    [
      `From ${String(random.int(2 ** 31)).padStart(40, '0')} Mon Sep 17 00:00:00 2001`,
      'From: Zoë Ångström <zoe@example.com>',
      `Subject: [PATCH] ${sentence(random)}`,
      '',
      `diff --git a/${file} b/${file}`,
      `--- a/${file}`,
      `+++ b/${file}`,
      ...hunks.flat(),
      '-- ',
      '2.45.0',
      '',
    ].join('\n'),
  )
}

function hunk(random: Random, line: number): string[] {
  const context = (): string => `   /* ${sentence(random)} */`
  return [
    `@@ -${line},3 +${line},4 @@`,
    context(),
    `-  if (length < ${random.int(100)}) return -1;`,
    `+  if (length < 0 || length > ${random.between(100, 900)}) return -1;`,
    '+  memset(buffer, 0, sizeof buffer);',
    context(),
  ]
}
