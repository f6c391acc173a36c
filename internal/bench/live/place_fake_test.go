//go:build !gpu

package live

// onGPU says that the tests run on the driver that is installed, and not on the fake.
const onGPU = false
