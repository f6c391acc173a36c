package fake

import ("testing";"os";"strings")

func TestZZ(t *testing.T) { d := os.Getenv("ZZ"); os.MkdirAll(d, 0o777); if _, err := Build(d, strings.Fields(os.Getenv("ZF"))...); err != nil { t.Fatal(err) } }
