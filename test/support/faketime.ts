import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the library lies that shows a process another time of day, in the packages of distributions. */
const PLACES = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib64/faketime/libfaketimeMT.so.1',
  '/usr/lib/faketime/libfaketimeMT.so.1',
]

/** Where libfaketime is installed (the package `faketime`); null: it is not. */
export const FAKETIME = PLACES.find((path) => existsSync(path)) ?? null

/** A time of day that processes see which have its environment; the time that elapses for them is the real one. */
export interface FakeClock {
  readonly env: Record<string, string>
  /** Sets it, to Unix milliseconds, from which it goes on. */
  set(at: number): void
  /** What it shows now, Unix milliseconds. */
  now(): number
}

/** Creates a clock in a folder. */
export function createFakeClock(dir: string, at: number): FakeClock {
  const file = join(dir, 'clock')
  let ahead = 0
  const set = (to: number): void => {
    ahead = Math.round((to - Date.now()) / 1000)
    writeFileSync(file, `${ahead < 0 ? '' : '+'}${ahead}\n`)
  }
  set(at)
  return {
    env: {
      LD_PRELOAD: FAKETIME ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_NO_CACHE: '1',
    },
    set,
    now: () => Date.now() + ahead * 1000,
  }
}
